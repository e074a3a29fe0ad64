internal import Foundation
internal import LocalCluster

/// Runs Debian's nginx in front of a local port with the default proxy settings; passes its port to the body.
package func withNginx(before port: Int, _ body: (Int) async throws -> Void) async throws {
    let unpacked = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: ".build/nginx").path
    let program = [unpacked, "/usr/sbin/nginx"].first { FileManager.default.isExecutableFile(atPath: $0) }
    guard let program else { throw RawProblem(description: "no \(unpacked); deploy/test makes it") }
    let folder = FileManager.default.temporaryDirectory.appending(path: "fieldpost-nginx-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let own = try Ports.free()
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
        "\($0)_temp_path \(folder.path)/\($0);"
    }
    try """
    daemon off;
    master_process off;
    pid \(folder.path)/pid;
    events { worker_connections 256; }
    http {
        access_log off;
        gzip on;
        \(folders.joined(separator: " "))
        server {
            listen 127.0.0.1:\(own);
            location / { proxy_pass http://127.0.0.1:\(port); }
        }
    }
    """.write(to: folder.appending(path: "nginx.conf"), atomically: true, encoding: .utf8)
    let process = try ClusterProcess(
        ClusterProcess.Command(
            executable: program, arguments: ["-e", "stderr", "-c", "\(folder.path)/nginx.conf"],
            logPath: "\(folder.path)/log"))
    defer { process.kill9() }
    let deadline = ContinuousClock.now + patienceMax
    while !Ports.isListening(own) {
        guard process.isRunning, ContinuousClock.now < deadline else {
            throw RawProblem(description: "nginx does not listen: \(process.logTail())")
        }
        try await Task.sleep(for: .milliseconds(10))
    }
    try await body(own)
}
