import Access
import Foundation
import Model
import NIOCore
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Reading the change log from each realm's own position.
@Suite(.ownThreads) struct ChangePageTests {
    @Test func eachRealmContinuesFromItsOwnPosition() async throws {
        try await withGateway { fixture in
            let paths = (0..<3).map { _ in RealmPath.team(UUID()) }
            let numbers = try paths.map { try fixture.realm($0) }
            var positions: [Int32: [Int64]] = [:]
            for round in 0..<60 {
                let realm = numbers[round % 3]
                try fixture.write {
                    $0.put(
                        ObjectKey(realm: realm, kind: .fieldTask, id: UUID()), try CanonicalJSON("{\"title\":\"t\"}"),
                        decision: 0)
                }
                positions[realm, default: []].append(Int64(round + 1))
            }
            // The third realm is not open.
            let held: [Int32: Int64] = [numbers[0]: 40, numbers[1]: 5]
            let pages = try fixture.withDatabase { connection in
                let caller = Caller.integration(.init(environment: fixture.environment, id: 1, name: "books"))
                let access = try AccessReader(caller, RealmNumbers(), on: &connection)
                var limits = GatewayLimits()
                limits.changeCountMax = 7
                var realms = (0..<2).map {
                    OpenRealm(path: paths[$0], number: numbers[$0], progress: .changeLog(held[numbers[$0]] ?? 0))
                }
                var pages: [ChangePage] = []
                repeat {
                    let page = try ChangePage.read(
                        realms, access: access, sent: nil, format: .device, in: fixture.environment, limits: limits,
                        names: KindNames(), on: &connection)
                    pages.append(page)
                    for index in realms.indices {
                        guard case .changeLog(let held) = realms[index].progress else { continue }
                        realms[index].progress = .changeLog(max(held, page.position))
                    }
                } while pages.last?.isFull == true && pages.count < 100
                #expect(
                    try ChangePage.read(
                        [], access: access, sent: nil, format: .device, in: fixture.environment, limits: limits,
                        names: KindNames(), on: &connection
                    ).isRead)
                return pages
            }
            #expect(pages.count == 6 && pages.allSatisfy(\.isRead) && pages.last?.position == 60)
            var seen: [String: [Int64]] = [:]
            for line in pages.flatMap(\.lines) {
                let value = try JSONSerialization.jsonObject(with: Data(String(buffer: line).utf8))
                let objects = try #require((value as? [String: [String: Any]])?["objects"])
                let list = try #require(objects["list"] as? [[String: Any]])
                seen[try #require(objects["realm"] as? String), default: []] += list.compactMap {
                    ($0["position"] as? Int).map(Int64.init)
                }
            }
            for (path, number) in zip(paths, numbers).prefix(2) {
                #expect(seen[path.description] == positions[number]?.filter { $0 > held[number] ?? 0 })
            }
            #expect(seen.count == 2)
        }
    }
}
