#include <string.h>
#include <zlib.h>

/// Maximum number of bytes that `zlib_deflate` writes for a number of bytes.
static inline size_t zlib_deflate_bound(size_t count) { return count + count / 4 + 64; }

/// Compresses bytes into complete deflate blocks, which end at a byte boundary and are not the last ones of a stream.
/// Returns the number of bytes written to `output`; 0 if memory is exhausted.
static inline size_t zlib_deflate(const void *bytes, size_t count, void *output, size_t capacity) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    // A negative window selects blocks without a header: the gzip header is written once, by the caller.
    // A short input needs a small window: 32 KB of memory instead of 256 KB.
    int is_short = count <= 4096;
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, is_short ? -12 : -15, is_short ? 5 : 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return 0;
    stream.next_in = (Bytef *)bytes;
    stream.avail_in = (uInt)count;
    stream.next_out = output;
    stream.avail_out = (uInt)capacity;
    int code = deflate(&stream, Z_SYNC_FLUSH);
    size_t written = code == Z_OK && stream.avail_in == 0 && stream.avail_out > 0 ? capacity - stream.avail_out : 0;
    deflateEnd(&stream);
    return written;
}
