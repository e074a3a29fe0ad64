import Essentials
import Model

/// What each service holds after few objects, and after many.
struct BenchFanOutMemory {
    let options: BenchOptions
    let objectCount: Int

    private static let fewest = 10_000

    func run() throws {
        for service in [Services.taskFanOut, Services.locationFanOut, Services.shareFanOut] {
            let few = try memory(of: service, after: Self.fewest)
            let many = try memory(of: service, after: objectCount)
            print("\(service.name): \(BenchFigures.text(few)) MB after \(Self.fewest) objects, ", terminator: "")
            print("\(BenchFigures.text(many)) MB after \(objectCount)")
            print(BenchFigures.ratio("many / few", many / few, aim: 1.1, isAtMost: true))
        }
    }

    private func memory(of service: ServiceDescription, after count: Int) throws -> Double {
        let place = try BenchPlace(options, for: service)
        defer { place.end() }
        switch service {
        case Services.taskFanOut:
            var tasks = try BenchTasks(on: place)
            try tasks.add(count)
            try tasks.world.begin(service)
            try tasks.publish(tasks.tasks)
            return try memory(of: service, on: place, after: count, in: &tasks.world)
        case Services.locationFanOut:
            var people = try BenchPeople(count, teamsEach: 1, on: place)
            try people.world.begin(service)
            try people.move()
            return try memory(of: service, on: place, after: people.copyCount, in: &people.world)
        default:
            var shares = try BenchShares(count / BenchShares.recipientCount, on: place)
            try shares.world.begin(service)
            let worker = try BenchWorker(service, on: place)
            defer { worker.end() }
            try shares.share()
            return worker.memory
        }
    }

    private func memory(
        of service: ServiceDescription, on place: BenchPlace, after count: Int, in world: inout BenchWorld
    ) throws -> Double {
        let start = try world.position()
        let worker = try BenchWorker(service, on: place)
        defer { worker.end() }
        try world.wait(until: start + Int64(count))
        return worker.memory
    }
}
