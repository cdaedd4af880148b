"""Changes from the page: each is an operation of the HTTP interface, by the same key and with the same audit entry."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from msgspec import Meta

from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import Settings
from superarm.service.errors import RequestError, invalid, unknown
from superarm.service.http import handlers
from superarm.service.http.auth import Principal, permit
from superarm.service.http.handlers import Call
from superarm.service.http.service import Service
from superarm.service.schemas import ArmsBody, LearnBody, SettingsBody

Percent = Annotated[float, Meta(ge=0.0, le=100.0)]


def require_own_page(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a change that a page of another origin sends: its browser says where the form comes from."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin", b"")
    own = site == b"same-origin" if site is not None else origin.partition(b"://")[2] == headers.get(b"host")
    if not own:
        raise RequestError(403, "forbidden", "changes are taken from the console's own pages only")


def is_paused(settings: Settings) -> bool:
    """Whether every decision shows the baseline or the control slate."""
    return settings.mode != "online" or settings.control == 1.0


async def change(service: Service, who: Principal, form: Mapping[str, str]) -> str:
    """Do what a form asks for; the address to show afterwards."""
    permit(who, "admin")
    name, what = form.get("problem", ""), form.get("change", "")
    await service.coordinator.ownership.enter((who.tenant, name), creates=False)
    state = await service.coordinator.find(who.tenant, name)
    call = Call(service, who, {"name": name})
    if what in ("retire", "restore"):
        arm = form.get("arm", "")
        if state.arms.number(arm) is None:
            raise unknown(state.words.one("arm"), arm[:100])
        body = ArmsBody(retire=[arm]) if what == "retire" else ArmsBody(add=[arm])
        await handlers.post_arms(call._replace(body=body))
    elif what == "items":
        wanted = {"version": form["version"]} if "version" in form else {}
        await handlers.learn_items(call._replace(body=msgspec.convert(wanted, LearnBody, strict=False)))
    elif what == "back":
        await handlers.restore_version(call._replace(path={"name": name, "version": form.get("version", "")}))
    else:
        settings = msgspec.convert(_settings(state, what, form), SettingsBody)
        await handlers.patch_settings(call._replace(body=settings))
    query = urlencode(parse_qsl(form.get("query", "")) or [("problem", name)])
    place = quote(form.get("place") or "changes")
    return f"versions?{query}" if place == "versions" else f"./?{query}#{place}"


def _settings(state: ProblemState, what: str, form: Mapping[str, str]) -> dict[str, Any]:
    """The settings that a form asks for: another control share, a pause, or the end of one.

    A pause shows the control slate always; where that is the caller's baseline, by the mode that answers with it.
    """
    if what == "control":
        return {"control": msgspec.convert(form.get("share", ""), Percent, strict=False) / 100.0}
    if what == "pause":
        return {"mode": "apprentice"} if state.settings.control_slate == "baseline" else {"control": 1.0}
    if what == "resume":
        shares = [one.control for one in state.versions if not is_paused(one)]
        return {"mode": "online", "control": shares[-1] if shares else 0.0}
    raise invalid("change", f"{what[:40]!r}", "choose retire, restore, control, pause, resume, items or back")
