"""Tables of few attributes: fitted to each other, moved towards what smaller ones suggest, bounded where nobody asked.

`residuals` is least squares, `measured` the same with a cube among the tables; `mixture` is a model of very many
columns; `shrinking` moves tables towards models of them; `fitting` makes tables agree; `errors` and `shrunk` are what
intervals stand on, `frechet` what bounds do; `published` is what a release holds. Mechanisms for cubes and wide tables
import it.
"""
