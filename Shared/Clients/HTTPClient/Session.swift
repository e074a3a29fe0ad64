internal import CCurl
import Synchronization

/// A cookie jar: cookies that a server sets are sent only in later requests with the same session.
///
/// Cookies follow RFC 6265 as libcurl implements it, in memory, until the session ends.
package final class Session: Sendable {
    private let jar: Mutex<CookieJar>

    package init() {
        jar = Mutex(CookieJar())
    }

    /// Attaches the jar to a transfer, which must retain the session until it has detached the jar.
    func attach(to easy: UnsafeMutableRawPointer) -> CURLcode {
        // Passed as a number, because a pointer from outside cannot enter the lock's isolation region.
        let address = UInt(bitPattern: easy)
        return jar.withLock { jar in jar.attach(toHandleAt: address) }
    }
}

/// Owns one `curl_jar`. libcurl locks it during access to cookies.
@safe private struct CookieJar: ~Copyable {
    private let pointer: UnsafeMutablePointer<curl_jar>?

    init() { unsafe pointer = curl_jar_new() }

    deinit {
        if let pointer = unsafe pointer { unsafe curl_jar_free(pointer) }
    }

    func attach(toHandleAt address: UInt) -> CURLcode {
        guard let pointer = unsafe pointer, let easy = unsafe UnsafeMutableRawPointer(bitPattern: address) else {
            return CURLE_OUT_OF_MEMORY
        }
        let code = unsafe curl_set_pointer(easy, CURLOPT_SHARE, pointer.pointee.share)
        // Only handles with an enabled cookie engine use a shared jar; an empty file name enables it.
        return code == CURLE_OK ? unsafe curl_set_text(easy, CURLOPT_COOKIEFILE, "") : code
    }
}
