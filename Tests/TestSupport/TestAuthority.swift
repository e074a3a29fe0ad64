import Foundation
import LocalCluster

/// A certificate authority and its certificates for 127.0.0.1, in a temporary folder that is removed with this value.
package final class TestAuthority: Sendable {
    /// A PEM file of the authority's certificate; a client that trusts it trusts all certificates.
    package let file: String
    package let folder: String
    private let key: String

    package init() throws {
        folder = FileManager.default.temporaryDirectory.path + "/fieldpost-authority-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        (file, key) = (folder + "/authority.crt", folder + "/authority.key")
        try openssl("-days 365 -subj /CN=authority -keyout \(key) -out \(file)")
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// Writes `tls.crt` and `tls.key` into a folder, which is made if necessary.
    ///
    /// - Parameter days: The validity, by which tests distinguish certificates.
    package func issue(days: Int, in folder: String) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try openssl(
            "-days \(days) -subj /CN=fieldpost -addext subjectAltName=IP:127.0.0.1 -CA \(file) -CAkey \(key)"
                + " -keyout \(folder)/tls.key -out \(folder)/tls.crt")
    }

    /// Issues a certificate, and puts it into a folder as Kubernetes does: `tls.crt` and `tls.key` are links through
    /// the link `..data`, which is replaced by renaming.
    package func publish(days: Int, in folder: String) throws {
        let files = FileManager.default
        try issue(days: days, in: "\(folder)/..\(days)")
        for name in ["tls.crt", "tls.key"] where !files.fileExists(atPath: "\(folder)/\(name)") {
            try files.createSymbolicLink(atPath: "\(folder)/\(name)", withDestinationPath: "..data/\(name)")
        }
        try files.createSymbolicLink(atPath: "\(folder)/..new", withDestinationPath: "..\(days)")
        try runToEnd("mv", ["-T", "\(folder)/..new", "\(folder)/..data"])
    }

    private func openssl(_ arguments: String) throws {
        let start = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        try runToEnd("openssl", (start + arguments).split(separator: " ").map(String.init))
    }
}
