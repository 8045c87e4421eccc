"""Who thought of a mechanism: the papers that the registry's entries name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """One publication: all authors, family names last, and the journal or conference of the form that is cited."""

    authors: str
    year: int
    title: str
    venue: str

    @property
    def short(self) -> str:
        """The first author, or both of two, and the year."""
        names = [name.split(". ")[-1] for name in self.authors.split(", ")]
        who = " and ".join(names) if len(names) <= 2 else f"{names[0]} et al."
        return f"{who} {self.year}"

    @property
    def cited(self) -> str:
        """The line of a list of references."""
        return f"{self.authors}: {self.title}. {self.venue}, {self.year}."


# fmt: off
DWORK = Paper("C. Dwork, F. McSherry, K. Nissim, A. Smith", 2006,
              "Calibrating noise to sensitivity in private data analysis", "Theory of Cryptography Conference")
GAUSSIAN = Paper("C. Dwork, K. Kenthapadi, F. McSherry, I. Mironov, M. Naor", 2006,
                 "Our data, ourselves: privacy via distributed noise generation", "EUROCRYPT")
SPARSE = Paper("G. Cormode, C. Procopiuc, D. Srivastava, T. Tran", 2012,
               "Differentially private summaries for sparse data", "International Conference on Database Theory")
PREFIXES = Paper("H. Fichtenberger, M. Henzinger, J. Upadhyay", 2023,
                 "Constant matters: fine-grained error bound on differentially private continual observation",
                 "International Conference on Machine Learning")
RESIDUALS = Paper("Y. Xiao, G. He, D. Zhang, D. Kifer", 2023,
                  "An optimal and scalable matrix mechanism for noisy marginals under convex loss functions",
                  "Advances in Neural Information Processing Systems")
BUCKETS = Paper("J. Xu, Z. Zhang, X. Xiao, Y. Yang, G. Yu, M. Winslett", 2013,
                "Differentially private histogram publication", "The VLDB Journal")
LOSSY = Paper("G. Acs, C. Castelluccia, R. Chen", 2012,
              "Differentially private histogram publishing through lossy compression",
              "IEEE International Conference on Data Mining")
FREQUENCIES = Paper("V. Rastogi, S. Nath", 2010,
                    "Differentially private aggregation of distributed time-series with transformation and encryption",
                    "ACM SIGMOD International Conference on Management of Data")
CONSISTENCY = Paper("M. Hay, V. Rastogi, G. Miklau, D. Suciu", 2010,
                    "Boosting the accuracy of differentially private histograms through consistency",
                    "Proceedings of the VLDB Endowment")
MWEM = Paper("M. Hardt, K. Ligett, F. McSherry", 2012,
             "A simple and practical algorithm for differentially private data release",
             "Advances in Neural Information Processing Systems")
PRIVELET = Paper("X. Xiao, G. Wang, J. Gehrke", 2011, "Differential privacy via wavelet transforms",
                 "IEEE Transactions on Knowledge and Data Engineering")
DPCUBE = Paper("Y. Xiao, L. Xiong, L. Fan, S. Goryczka, H. Li", 2014,
               "DPCube: Differentially private histogram release through multidimensional partitioning",
               "Transactions on Data Privacy")
SPATIAL = Paper("G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu", 2012,
                "Differentially private spatial decompositions", "IEEE International Conference on Data Engineering")
MATCHING = Paper("A. Inan, M. Kantarcioglu, G. Ghinita, E. Bertino", 2010,
                 "Private record matching using differential privacy",
                 "International Conference on Extending Database Technology")
GRIDS = Paper("W. Qardaji, W. Yang, N. Li", 2013, "Differentially private grids for geospatial data",
              "IEEE International Conference on Data Engineering")
HIERARCHIES = Paper("W. Qardaji, W. Yang, N. Li", 2013,
                    "Understanding hierarchical methods for differentially private histograms",
                    "Proceedings of the VLDB Endowment")
DAWA = Paper("C. Li, M. Hay, G. Miklau, Y. Wang", 2014,
             "A data- and workload-aware algorithm for range queries under differential privacy",
             "Proceedings of the VLDB Endowment")
AHP = Paper("X. Zhang, R. Chen, J. Xu, X. Meng, Y. Xie", 2014,
            "Towards accurate histogram publication under differential privacy",
            "SIAM International Conference on Data Mining")
STRATEGIES = Paper("C. Li, M. Hay, V. Rastogi, G. Miklau, A. McGregor", 2010,
                   "Optimizing linear counting queries under differential privacy",
                   "ACM Symposium on Principles of Database Systems")
BLOCKS = Paper("G. Kellaris, S. Papadopoulos, D. Papadias", 2019,
               "Engineering methods for differentially private histograms: Efficiency beyond utility",
               "IEEE Transactions on Knowledge and Data Engineering")
# fmt: on
