"""Linear algebra on stacks of matrices: the last two axes of float32 (in C also float64) arrays."""

from tiki import _core as _core

cholesky = _core._linalg.cholesky
cholesky_inv = _core._linalg.cholesky_inv
cross = _core._linalg.cross
det = _core._linalg.det
eig = _core._linalg.eig
eigh = _core._linalg.eigh
eigvals = _core._linalg.eigvals
eigvalsh = _core._linalg.eigvalsh
inv = _core._linalg.inv
lu = _core._linalg.lu
lu_factor = _core._linalg.lu_factor
norm = _core._linalg.norm
pinv = _core._linalg.pinv
qr = _core._linalg.qr
slogdet = _core._linalg.slogdet
solve = _core._linalg.solve
solve_triangular = _core._linalg.solve_triangular
svd = _core._linalg.svd
tri_inv = _core._linalg.tri_inv
