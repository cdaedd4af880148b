"""Old public names work, with a warning that tells the new one."""

import pytest

import superarm as sa


def test_names_of_a_study(study):
    with pytest.warns(DeprecationWarning, match=r"Study\.of is now called Study\.records_for"):
        assert study.of("random (k=2)") == study.records_for("random (k=2)")
    with pytest.warns(DeprecationWarning, match=r"Study\.final_regret"):
        assert study.final("random (k=2)", "CUCB") is not None
    with pytest.warns(DeprecationWarning, match=r"Study\.instances"):
        assert study.worlds is study.instances


def test_names_of_modules():
    with pytest.warns(DeprecationWarning, match=r"experiments\.load_shipped"):
        assert sa.experiments.named is sa.experiments.load_shipped
    with pytest.warns(DeprecationWarning, match=r"theory\.SmoothnessCertificate"):
        assert sa.theory.Certificate is sa.theory.SmoothnessCertificate
    for module in (sa.experiments, sa.theory):
        with pytest.raises(AttributeError, match="no_such_name"):
            module.no_such_name  # noqa: B018
