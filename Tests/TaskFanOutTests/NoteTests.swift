import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import TaskFanOut

/// Notes about tasks in PostgreSQL: both sides converge in every order of events, and follow the task.
@Suite(.ownThreads) struct NoteTests {
    private static func note(_ task: UUID, _ text: String) -> String {
        let note = "\"task\":\"\(task.text)\",\"text\":\"\(text)\",\"author\":\"\(UUID().text)\""
        return "{\(note),\"writtenAt\":\"2026-03-30T09:40:00.000Z\"}"
    }

    /// Checks that a note has the text in exactly these realms.
    private func expect(
        _ note: UUID, _ text: String?, in paths: [RealmPath], _ world: inout TaskWorld,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let objects = try world.objectsByRealm(note, kind: .taskNote)
        #expect(Set(objects.keys) == Set(paths.map(\.description)), sourceLocation: sourceLocation)
        #expect(Set(objects.values).count <= 1, "\(objects)", sourceLocation: sourceLocation)
        if let text {
            #expect(objects.values.allSatisfy { $0.contains("\"\(text)\"") }, sourceLocation: sourceLocation)
        }
    }

    private func rowCount(_ world: inout TaskWorld) throws -> Int {
        try world.acme.connection.run("SELECT FROM task.note").count
    }

    @Test func noteOfEitherSideIsOnBoth() throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        let (member, manager) = (UUID(), UUID())
        try world.put(.taskNote, member, Self.note(task, "a"), in: .team(red))
        try world.put(.taskNote, manager, Self.note(task, "b"), in: .manager)
        try world.settle()
        try expect(member, "a", in: [.manager, .team(red)], &world)
        try expect(manager, "b", in: [.manager, .team(red)], &world)
        try world.patch(member, #"{"text":"c"}"#, kind: .taskNote, in: .team(red))
        try world.patch(manager, #"{"text":"d"}"#, kind: .taskNote, in: .manager)
        try world.settle()
        try expect(member, "c", in: [.manager, .team(red)], &world)
        try expect(manager, "d", in: [.manager, .team(red)], &world)
        #expect(try world.settleRepublished() == 0)
        try world.acme.delete(.taskNote, member, in: .manager)
        try world.acme.delete(.taskNote, manager, in: .team(red))
        try world.settle()
        try expect(member, nil, in: [], &world)
        try expect(manager, nil, in: [], &world)
        #expect(try rowCount(&world) == 0)
        #expect(try world.settleRepublished() == 0)
    }

    /// The note is written together with its task, before the task has a copy.
    @Test func noteOfNewTaskReachesTheCopy() throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let (task, note) = (UUID(), UUID())
        try world.put(.taskNote, note, Self.note(task, "a"), in: .manager)
        try world.settle()
        try expect(note, "a", in: [.manager], &world)
        try world.task("{\"title\":\"Pipe\"}", task)
        try world.patch(note, #"{"text":"b"}"#, kind: .taskNote, in: .manager)
        try world.settle()
        try expect(note, "b", in: [.manager], &world)
        try world.patch(task, "{\"assignee\":\"\(ana.text)\"}", in: .manager)
        try world.settle()
        try expect(note, "b", in: [.manager, .user("ana@example.com")], &world)
    }

    @Test func notesMoveWithTheTask() throws {
        var world = try TaskWorld()
        let ana = try world.person("ana")
        let (red, blue) = (try world.acme.makeTeam(), try world.acme.makeTeam())
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        let note = UUID()
        try world.put(.taskNote, note, Self.note(task, "a"), in: .team(red))
        try world.settle()
        for (fields, path) in [
            ("{\"team\":\"\(blue.text)\"}", RealmPath.team(blue)), ("{\"team\":\"\(red.text)\"}", .team(red)),
            ("{\"team\":null,\"assignee\":\"\(ana.text)\"}", try .user("ana@example.com")),
        ] {
            try world.patch(task, fields, in: .manager)
            try world.settle()
            try expect(note, "a", in: [.manager, path], &world)
        }
        try world.patch(task, "{\"assignee\":null}", in: .manager)
        try world.settle()
        try expect(note, "a", in: [.manager], &world)
        #expect(try world.settleRepublished() == 0)
        try world.acme.delete(.fieldTask, task, in: .manager)
        try world.settle()
        try expect(note, nil, in: [], &world)
        #expect(try rowCount(&world) == 0)
    }

    /// A member edits or deletes the note between the decision to move it and the commit.
    @Test(arguments: [false, true]) func changeDuringAMoveIsNotLost(isDeletion: Bool) throws {
        var world = try TaskWorld()
        let (red, blue) = (try world.acme.makeTeam(), try world.acme.makeTeam())
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        let note = UUID()
        try world.put(.taskNote, note, Self.note(task, "a"), in: .team(red))
        try world.settle()
        // The task has moved; its notes are due.
        try world.patch(task, "{\"team\":\"\(blue.text)\"}", in: .manager)
        let (realm, environment) = (try world.acme.realm(.team(red)), world.acme.id)
        try world.settle { connection in
            if isDeletion {
                var batch = WriteBatch(environment: environment)
                batch.delete(ObjectKey(realm: realm, kind: .taskNote, id: note), decision: 0, isEdit: true)
                _ = try batch.commit(on: &connection)
            } else {
                try TaskWorld.patch(
                    note, #"{"text":"b"}"#, kind: .taskNote, in: realm, of: environment, on: &connection)
            }
        }
        if isDeletion {
            try expect(note, nil, in: [], &world)
        } else {
            try expect(note, "b", in: [.manager, .team(blue)], &world)
        }
        #expect(try world.settleRepublished() == 0)
    }

    /// The note's own decision conflicts with a concurrent edit of the other side.
    @Test func concurrentEditConflictsAndRetries() throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        let note = UUID()
        try world.put(.taskNote, note, Self.note(task, "a"), in: .team(red))
        try world.settle()
        try world.patch(note, #"{"text":"b"}"#, kind: .taskNote, in: .team(red))
        let (manager, environment) = (try world.acme.realm(.manager), world.acme.id)
        try world.settle { connection in
            try TaskWorld.patch(note, #"{"text":"c"}"#, kind: .taskNote, in: manager, of: environment, on: &connection)
        }
        #expect(world.missedCount == 1)
        try expect(note, "c", in: [.manager, .team(red)], &world)
    }

    /// A deletion and an edit of the two sides, in both orders: the deletion wins.
    @Test(arguments: [false, true]) func deletionWinsOverEdit(isDeletedFirst: Bool) throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        let note = UUID()
        try world.put(.taskNote, note, Self.note(task, "a"), in: .team(red))
        try world.settle()
        if isDeletedFirst { try world.acme.delete(.taskNote, note, in: .manager) }
        try world.patch(note, #"{"text":"b"}"#, kind: .taskNote, in: .team(red))
        if !isDeletedFirst { try world.acme.delete(.taskNote, note, in: .manager) }
        try world.settle()
        try expect(note, nil, in: [], &world)
        #expect(try world.settleRepublished() == 0)
    }

    /// The task is deleted between the decision about a new note and its commit.
    @Test func noteOfConcurrentlyDeletedTaskIsDeleted() throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        let note = UUID()
        try world.put(.taskNote, note, Self.note(task, "a"), in: .team(red))
        let (manager, environment) = (try world.acme.realm(.manager), world.acme.id)
        try world.settle { connection in
            var batch = WriteBatch(environment: environment)
            batch.delete(ObjectKey(realm: manager, kind: .fieldTask, id: task), decision: 0, isEdit: true)
            _ = try batch.commit(on: &connection)
        }
        #expect(world.missedCount == 1)
        try expect(note, nil, in: [], &world)
        #expect(try rowCount(&world) == 0)
    }

    @Test func notesOfExpiredTaskStayWithTheMaster() throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let task = try world.task("{\"title\":\"x\",\"team\":\"\(red.text)\",\"isCompleted\":true}")
        try world.settle()
        let note = UUID()
        try world.put(.taskNote, note, Self.note(task, "a"), in: .team(red))
        try world.settle()
        for (days, paths) in [(31, [RealmPath.manager]), (401, [.archive])] {
            try world.acme.connection.run(
                "UPDATE task.copy SET completed_at = now() - make_interval(days => \(Int32(days)))")
            try world.acme.connection.run(TaskCascade.expired(TaskRetention(), countMax: 100, in: world.acme.id))
            try world.settle()
            try expect(note, "a", in: paths, &world)
        }
        #expect(try rowCount(&world) == 0)
        #expect(try world.settleRepublished() == 0)
    }

    @Test func newestNotesAreKept() throws {
        var world = try TaskWorld()
        let red = try world.acme.makeTeam()
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        let notes = (0..<TaskNote.countMax + 5).map { _ in UUID() }
        for (index, note) in notes.enumerated() {
            try world.put(.taskNote, note, Self.note(task, "\(index)"), in: index % 2 == 0 ? .team(red) : .manager)
            if index % 100 == 50 { try world.settle() }
        }
        try world.settle()
        for note in notes.prefix(5) { try expect(note, nil, in: [], &world) }
        try expect(notes[5], "5", in: [.manager, .team(red)], &world)
        #expect(try rowCount(&world) == TaskNote.countMax)
        #expect(try world.settleRepublished() == 0)
    }

    /// An object of another realm under a note's id, such as an integration's, changes no note.
    @Test func foreignObjectUnderTheIDIsRemoved() throws {
        var world = try TaskWorld()
        let (red, blue) = (try world.acme.makeTeam(), try world.acme.makeTeam())
        let task = try world.task("{\"title\":\"Pipe\",\"team\":\"\(red.text)\"}")
        try world.settle()
        let note = UUID()
        try world.put(.taskNote, note, Self.note(task, "a"), in: .team(red))
        try world.settle()
        try world.put(.taskNote, note, Self.note(task, "x"), in: .team(blue))
        try world.settle()
        try expect(note, "a", in: [.manager, .team(red)], &world)
    }
}
