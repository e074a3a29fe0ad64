import Essentials
import FoundationEssentials
import HummingbirdCore
import Logging
import Metrics
import NIOCore
import NIOPosix
import NIOSSL
import ServiceSettings
import Synchronization

/// The certificate and the key of a server, re-read from their files while the server runs.
///
/// New connections use a changed pair once the key matches and the certificate is valid. Until then the previous
/// pair stays in use, since many programs replace the two files one after the other. Open connections are not affected.
final class ServerCertificate: Sendable {
    /// The contents of both files. Their comparison detects every kind of replacement: in place, by renaming, and by a
    /// symbolic link of a parent folder.
    private struct Contents: Equatable {
        let certificate: Data
        let key: Data

        init(_ files: HTTPEdge.TLSFiles) throws {
            func read(_ path: String) throws -> Data {
                guard let data = FileManager.default.contents(atPath: path) else {
                    throw ComponentError("\(path) cannot be read")
                }
                return data
            }
            certificate = try read(files.certificate)
            key = try read(files.key)
        }
    }

    private struct Pair {
        let contents: Contents
        let context: NIOSSLContext
        /// The validity of the first certificate.
        let start: Timestamp
        let expiry: Timestamp

        /// - Throws: If a file has another format, or the key does not match.
        init(_ contents: Contents) throws {
            let chain = try NIOSSLCertificate.fromPEMBytes([UInt8](contents.certificate))
            guard let first = chain.first else { throw ComponentError("the file has no certificate") }
            let key = try NIOSSLPrivateKey(bytes: [UInt8](contents.key), format: .pem)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain.map(NIOSSLCertificateSource.certificate), privateKey: .privateKey(key))
            configuration.minimumTLSVersion = .tlsv12
            configuration.applicationProtocols = ["http/1.1"]
            // It compares the key with the certificate.
            context = try NIOSSLContext(configuration: configuration)
            start = Timestamp(millisecondsSinceEpoch: Int64(first.notValidBefore) * 1000)
            expiry = Timestamp(millisecondsSinceEpoch: Int64(first.notValidAfter) * 1000)
            self.contents = contents
        }
    }

    private struct State {
        var pair: Pair
        /// The time of the next log event about unusable files; `nil` while the files are in use.
        var reportAt: Timestamp?
    }

    private let files: HTTPEdge.TLSFiles
    private let server: String
    private let logger: Logger
    private let expiry: Gauge
    private let state: Mutex<State>

    /// Time until unusable files are logged: a renewal that replaces one file after the other is not an error.
    private static let reportAfter = Duration.seconds(60)
    private static let reportInterval = Duration.seconds(3600)

    /// - Parameter server: The server's name in logs and metrics.
    /// - Throws: `ComponentError` if the files cannot be used. An expired certificate is used, and logged.
    init(_ files: HTTPEdge.TLSFiles, server: String, logger: Logger) throws(ComponentError) {
        (self.files, self.server, self.logger) = (files, server, logger)
        expiry = Gauge(label: "fieldpost.tls.certificate.expiry_timestamp_seconds", dimensions: [("server", server)])
        let pair: Pair
        do {
            pair = try Pair(try Contents(files))
        } catch {
            throw ComponentError("cannot use the certificate \(files.certificate) with the key \(files.key): \(error)")
        }
        state = Mutex(State(pair: pair))
        expiry.record(pair.expiry.secondsSinceEpoch)
    }

    /// The TLS context of new connections.
    var context: NIOSSLContext { state.withLock { $0.pair.context } }

    /// Polls the files until the task is cancelled.
    func run() async {
        while (try? await Task.sleep(for: files.pollInterval)) != nil {
            // A network file system may block.
            try? await NIOThreadPool.singleton.runIfActive { self.poll() }
        }
    }

    /// Reads the files, and uses them if they changed and match.
    func poll(now: Timestamp = .now()) {
        do {
            let contents = try Contents(files)
            let current = state.withLock { $0.pair }
            let isChanged = contents != current.contents
            let pair = try isChanged ? Pair(contents) : current
            guard pair.start <= now else { throw ComponentError("the certificate is valid from \(pair.start)") }
            guard pair.expiry > now else { throw ComponentError("the certificate expired at \(pair.expiry)") }
            state.withLock { $0 = State(pair: pair) }
            guard isChanged else { return }
            expiry.record(pair.expiry.secondsSinceEpoch)
            logger.info("TLS certificate renewed", metadata: metadata(pair))
        } catch {
            report(error, now: now)
        }
    }

    private func report(_ error: any Error, now: Timestamp) {
        let pair: Pair? = state.withLock { state in
            guard let reportAt = state.reportAt else {
                state.reportAt = now.adding(Self.reportAfter)
                return nil
            }
            guard now >= reportAt else { return nil }
            state.reportAt = now.adding(Self.reportInterval)
            return state.pair
        }
        guard let pair else { return }
        logger.error(
            "TLS certificate cannot be renewed", metadata: metadata(pair).merging(["error": "\(error)"]) { $1 })
    }

    /// - Parameter pair: The pair in use.
    private func metadata(_ pair: Pair) -> Logger.Metadata {
        [
            "server": "\(server)", "certificate": "\(files.certificate)", "key": "\(files.key)",
            "expiry": "\(pair.expiry)",
        ]
    }
}

/// Adds TLS to a connection, with the certificate of the time at which it was accepted.
struct TLSChannel<Inner: ServerChildChannel>: ServerChildChannel {
    let inner: Inner
    let certificate: ServerCertificate

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Inner.Value> {
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: certificate.context))
        }.flatMap { inner.setup(channel: channel, logger: logger) }
    }

    func handle(value: Inner.Value, logger: Logger) async { await inner.handle(value: value, logger: logger) }
}
