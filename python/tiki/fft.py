"""Fourier transforms, in complex64."""

from tiki import _core as _core

fft = _core._fft.fft
ifft = _core._fft.ifft
rfft = _core._fft.rfft
irfft = _core._fft.irfft
fft2 = _core._fft.fft2
ifft2 = _core._fft.ifft2
rfft2 = _core._fft.rfft2
irfft2 = _core._fft.irfft2
fftn = _core._fft.fftn
ifftn = _core._fft.ifftn
rfftn = _core._fft.rfftn
irfftn = _core._fft.irfftn
fftshift = _core._fft.fftshift
ifftshift = _core._fft.ifftshift
fftfreq = _core._fft.fftfreq
rfftfreq = _core._fft.rfftfreq
stft = _core._fft.stft
istft = _core._fft.istft
