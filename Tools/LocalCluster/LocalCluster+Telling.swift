import Foundation
import HTTPClient

extension LocalCluster {
    /// Prints of each service what its health page and its log said last, when a rehearsal failed: why something is
    /// not done is said there.
    ///
    /// What is printed afterwards, as the failure itself, comes after it in a file too.
    package func tell(of services: [Part]) async {
        let client = Client()
        defer { client.shutDown() }
        for part in services {
            print("--- \(part.name)\n\(process(part)?.logTail() ?? "")")
            do {
                let url = adminURL(part) + "/health/ready"
                let answer = try await client.send(Request(url, connectMax: .seconds(1), totalMax: .seconds(2)))
                print("\(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
            } catch {
                print("no answer: \(error)")
            }
        }
        fflush(nil)
    }
}
