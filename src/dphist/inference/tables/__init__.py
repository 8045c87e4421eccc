"""Tables of few attributes: fitted to each other, moved towards what smaller ones suggest, bounded where nobody asked.

`measured` and `residuals` are least squares; `mixture` is a model of very many columns, fitted by `descent`; `fitting`
and `reconciling` make tables agree; `published` is what a release holds. Mechanisms for cubes and wide tables import
it.
"""
