// libharu writes PDF documents. libpng decodes photos: libharu ends the process if a PNG file is damaged.
#include <hpdf.h>
#include <png.h>
