internal import CCurl
import Synchronization

/// A cookie jar of its own: what a server sets is sent back on later requests with this session, and on no others.
///
/// Cookies follow RFC 6265 as libcurl does it, live in memory, and end with the session.
package final class Session: Sendable {
    private let jar: Mutex<CookieJar>

    package init() {
        jar = Mutex(CookieJar())
    }

    /// Lends the jar to a transfer, which must keep the session until it has let go of the jar.
    func attach(to easy: UnsafeMutableRawPointer) -> CURLcode {
        // As a number, because a pointer that came from outside may not enter the lock's region.
        let address = UInt(bitPattern: easy)
        return jar.withLock { jar in jar.attach(toHandleAt: address) }
    }
}

/// Owns one `curl_jar`. libcurl locks it while it reads or writes cookies.
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
        // A shared jar is used only by handles whose cookie engine was switched on, which an empty file name does.
        return code == CURLE_OK ? unsafe curl_set_text(easy, CURLOPT_COOKIEFILE, "") : code
    }
}
