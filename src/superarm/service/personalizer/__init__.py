"""Azure Personalizer's rank and reward calls, answered by this service.

``superarm serve --compat personalizer`` adds these routes.
"""
