import Foundation
import LocalCluster

/// The transfer between two installations: `fieldpost environment export` and `import`, connected by a pipe.
struct MoveTransfer: Sendable {
    /// The end of a stream.
    enum End: Sendable {
        case complete(receipt: String)
        /// The resume token of the importer; `nil`: the transfer restarts.
        case cut(resume: String?)
    }

    let name: String
    let old: LocalCluster
    let new: LocalCluster

    /// The transfer key.
    static let key = Data(repeating: 3, count: 32).base64EncodedString()
    static let keyVariable = "TRANSFER_KEY"
    private static let pollInterval = Duration.milliseconds(50)
    private static let within = Duration.seconds(7_200)

    private static let script = """
        "$FIELDPOST" environment export "$NAME" --key-from TRANSFER_KEY ${RESUME:+--resume "$RESUME"} 2>"$EXPORTED" \
        | eval "$CUT" \
        | FIELDPOST_DATABASE_URL="$NEW_DATABASE" FIELDPOST_SECRET_KEYS="$NEW_KEYS" \
        "$FIELDPOST" environment import --key-from TRANSFER_KEY
        """

    /// Transfers the environment.
    ///
    /// - Parameters:
    ///   - resume: The resume token of the importer.
    ///   - bytes: Bytes after which the stream is cut and its sender killed; `nil`: never.
    ///   - memory: Peak memory of the commands, in MB.
    func send(resume: String?, cutAfter bytes: Int?, memory: inout [String: Double]) async throws -> End {
        let exported = old.folder.path + "/exported"
        let process = try old.startCommand(
            ["-c", Self.script], of: "sh", log: "transfer-\(UUID().uuidString)", from: "/bin",
            variables: [
                "FIELDPOST": LocalCluster.executables + "/fieldpost", "NAME": name, Self.keyVariable: Self.key,
                "RESUME": resume ?? "", "EXPORTED": exported, "NEW_DATABASE": new.conninfo,
                "NEW_KEYS": new.home.secretKeys, "CUT": bytes.map { "head -c \($0)" } ?? "cat",
            ])
        defer { process.kill9() }
        let deadline = ContinuousClock.now + Self.within
        while process.isRunning {
            for (command, kilobytes) in Self.memory(of: process.id) {
                memory[command] = max(memory[command] ?? 0, kilobytes / 1_024)
            }
            guard .now < deadline else { throw ClusterFailure("timeout of the transfer after \(Self.within)") }
            try await Task.sleep(for: Self.pollInterval)
        }
        let words = process.logTail().split(whereSeparator: \.isWhitespace).map(String.init)
        if process.end == .exited(status: 0), let receipt = words.last { return .complete(receipt: receipt) }
        guard bytes != nil, process.logTail().contains("the stream was cut") else {
            let output = FileManager.default.contents(atPath: exported) ?? Data()
            throw ClusterFailure(
                "export: \(String(decoding: output, as: UTF8.self)); import: \(process.logTail())")
        }
        return .cut(resume: words.last.flatMap { $0 == "export" ? nil : $0 })
    }

    /// The number of rows that the last export sent while write-blocked, from its output.
    func heldRowCount() -> Int? {
        let output = FileManager.default.contents(atPath: old.folder.path + "/exported") ?? Data()
        let words = String(decoding: output, as: UTF8.self).split(separator: " ")
        return words.dropFirst(3).first.flatMap { Int($0) }
    }

    /// Peak memory of each of the shell's commands, in kB, by the second argument of its command line.
    private static func memory(of shell: pid_t) -> [(command: String, kilobytes: Double)] {
        let children = (try? String(contentsOfFile: "/proc/\(shell)/task/\(shell)/children", encoding: .utf8)) ?? ""
        return children.split(separator: " ").compactMap { pid_t($0) }.compactMap { id in
            guard let line = FileManager.default.contents(atPath: "/proc/\(id)/cmdline"),
                let kilobytes = ProcessUsage.value("VmHWM", of: id)
            else { return nil }
            let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            return words.count > 2 ? (words[2], kilobytes) : nil
        }
    }
}
