import Essentials
import Foundation
import LocalCluster
import TestSupport
import Testing

extension FlowTests {
    /// People use the field app in real browsers, with every executable behind it.
    @Suite(.serialized, SharedAppInstallation()) struct AppFlowTests {
        private let installation: AppInstallation
        private var cluster: LocalCluster { installation.cluster }

        init() throws { installation = try #require(SharedAppInstallation.installation) }

        /// Runs `body` with people who are signed in; if it fails, prints what their pages display.
        private func run(_ people: AppPerson..., body: () async throws -> Void) async throws {
            do {
                try await body()
            } catch {
                for person in people { await person.printDiagnostics() }
                throw error
            }
        }

        // MARK: Time

        @Test(.timeLimit(.minutes(20))) func entriesAreReleasedOrInvalidWithTheReason() async throws {
            let worker = try await installation.person(.worker)
            let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day
            let locked = today.adding(days: -20)
            try await cluster.post("/sandbox/switches", Data(#"{"lockedThrough": "\#(locked)"}"#.utf8))
            try await run(worker) {
                try await add("survey", on: today.adding(days: -1), worker)
                try await worker.see("Released")
                try await worker.see("Work 1.7")
                try await add("late survey", on: locked, isRecent: true, worker)
                try await worker.see("Invalid")
                try await worker.see("locked for time recording")
                try await worker.click(.link, "Customer")
                try await worker.see("It cannot be submitted as it is")
                // The notice leads to the entry too.
                try await worker.open("Notices")
                try await worker.click(.button, "is invalid. The period is locked")
                try await worker.see("It cannot be submitted as it is")
            }
            let recorded = try await cluster.recorded()
            // A marker follows the text.
            let texts = recorded.map { entry in entry.note.prefix { $0 != " " } }
            #expect(texts == ["survey"])
        }

        /// Adds an entry with the picker or the recent selection, and submits it.
        private func add(_ text: String, on day: Day, isRecent: Bool = false, _ worker: AppPerson) async throws {
            try await worker.open("Time")
            try await worker.click(.link, "Add entry")
            try await worker.see("New entry")
            if isRecent {
                try await worker.click(.button, "Customer · Project 1 · Work 1.7")
            } else {
                try await worker.click(.button, "Customer")
                try await worker.click(.button, "Project 1")
                try await worker.click(.button, "Choose from 8")
                try await worker.fill("Search Accounting code", "1.7")
                try await worker.click(.button, "Work 1.7")
            }
            try await worker.fill("Hours", "1:30")
            try await worker.fill("Day", "\(day)")
            try await worker.fill("Text", text)
            try await worker.click(.button, "Submit")
            try await worker.see(text)
        }

        // MARK: Tasks

        @Test(.timeLimit(.minutes(20))) func taskIsCompletedOfflineWithAPhotoThatTheManagerSees() async throws {
            let (worker, manager) = (try await installation.person(.worker), try await installation.person(.manager))
            let title = "Repair the pump"
            try await run(worker, manager) {
                let map = try await manager.openWindow()
                try await manager.open("Team", in: map)
                try await worker.open("Tasks")
                try await worker.markPage()
                try await assign(title, to: worker, manager)
                try await manager.see(.button, title, in: map)
                try await worker.see(.link, title)
                #expect(try await worker.isMarked, "the page was not loaded again")
                try await worker.open("Notices")
                try await worker.see(.button, title)

                try await worker.setOffline(true)
                try await worker.seeStatus("Offline")
                try await worker.click(.button, title)
                try await completeWithPhoto(worker)
                let servers = [LocalCluster.Part.onboarding, .gateway]
                for part in servers { await cluster.kill9(part) }
                try await worker.restartBrowser()
                try await worker.seeStatus("Offline")
                try await showCompleted(title, worker)
                try await expectPhoto(worker)
                try await manager.see(.button, title, in: map)

                try await cluster.startAll(servers)
                try await worker.seeStatus("Up to date")
                try await manager.see(.button, title, false, in: map)
                try await manager.open("Tasks")
                try await manager.see(.link, title, false)
                try await showCompleted(title, manager)
                try await expectPhoto(manager)
                try await manager.close(map)
            }
        }

        /// Creates a task with coordinates.
        private func assign(_ title: String, to worker: AppPerson, _ manager: AppPerson) async throws {
            try await manager.open("Tasks")
            try await manager.click(.link, "New task")
            try await manager.fill("Title", title)
            try await manager.fill("Assignee", worker.displayName)
            try await manager.fill("Coordinates", "55.676, 12.568")
            try await manager.click(.button, "Create task")
            try await manager.see(.link, title)
        }

        private func completeWithPhoto(_ worker: AppPerson) async throws {
            try await worker.click(.button, "Complete")
            try await worker.see(.button, "Reopen")
            let photo = cluster.folder.path + "/photo.jpg"
            try await writePhoto(to: photo, worker)
            try await worker.attach(photo, to: "Photo")
            try await worker.see(.button, "Remove photo")
            try await worker.fill("Text of the note", "the seal was broken")
            try await worker.click(.button, "Add note")
            try await worker.see("Notes and photos (1)")
            try await worker.see("Not sent yet")
        }

        /// Writes a red image that is larger than the app sends.
        private func writePhoto(to path: String, _ worker: AppPerson) async throws {
            let url = try await worker.value(
                """
                (() => {
                    const canvas = Object.assign(document.createElement("canvas"), { width: 3000, height: 2000 });
                    const context = canvas.getContext("2d");
                    context.fillStyle = "rgb(200, 20, 30)";
                    context.fillRect(0, 0, canvas.width, canvas.height);
                    return canvas.toDataURL("image/jpeg");
                })()
                """)
            let data = try #require(url.split(separator: ",").last.flatMap { Data(base64Encoded: String($0)) })
            try data.write(to: URL(filePath: path))
        }

        /// Opens a completed task in the list.
        private func showCompleted(_ title: String, _ person: AppPerson) async throws {
            try await person.open("Tasks")
            try await person.fill("State", "Open and completed")
            try await person.click(.link, title)
            try await person.see(.button, "Reopen")
        }

        private func expectPhoto(_ person: AppPerson) async throws {
            try await person.see("the seal was broken")
            try await person.see(.button, "Enlarge photo")
            try await person.wait(
                """
                (() => {
                    const image = document.querySelector("[aria-label='Enlarge photo'] img");
                    const context = document.createElement("canvas").getContext("2d");
                    context.drawImage(image, 0, 0, 1, 1);
                    const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
                    return image.naturalWidth > 500 && red > 150 && green < 80 && blue < 80;
                })()
                """, for: "the red photo")
        }

        // MARK: Sharing

        @Test(.timeLimit(.minutes(20))) func appointmentIsSharedUntilItsOwnerStops() async throws {
            let worker = try await installation.person(.worker)
            let colleague = try await installation.person(.colleague)
            try await run(worker, colleague) {
                try await colleague.open("Shared")
                try await worker.open("Shared")
                try await worker.click(.button, "New appointment")
                try await worker.fill("Subject", "Visit the bridge")
                try await worker.click(.button, "Save")
                try await worker.click(.button, "Share")
                try await worker.click(.choice, colleague.displayName)
                try await worker.click(.button, "Share")
                try await colleague.click(.link, "Visit the bridge")
                try await colleague.see("Only the owner changes it")
                try await colleague.see(.link, "1 unread")
                try await colleague.open("Notices")
                try await colleague.click(.button, "Visit the bridge")

                try await worker.click(.button, "Stop sharing")
                try await worker.see("Only you can see this item.")
                try await colleague.see("No longer shared")
                try await colleague.see("It no longer follows its owner's changes.")
            }
        }

        // MARK: Defects

        @Test(.timeLimit(.minutes(20))) func stateOfADefectIsChanged() async throws {
            let worker = try await installation.person(.worker)
            try await installation.compass.post(
                "/sandbox/changes",
                #"[{"user": "bo", "fields": {"Headline": "Door jams", "Severity": "3-Average", "Owner": "ana"}}]"#)
            try await run(worker) {
                try await worker.open("Defects")
                try await worker.click(.choice, "Login")
                try await worker.fill("User", "ana")
                try await worker.fill("Password", "secret-of-ana")
                try await worker.click(.button, "Store login")
                try await worker.see("Accepted")
                try await worker.click(.choice, "Assigned")
                try await worker.click(.link, "Door jams")
                try await worker.see("Submitted")
                try await worker.click(.link, "Open")
                try await worker.click(.button, "Open")
                try await worker.see("State changed: Open")
                try await worker.see("Opened")
            }
            let history = try await installation.compass.history().filter { $0.headline == "Door jams" }
            #expect(history.map(\.action) == ["Submit", "Open"] && history.last?.user == "ana")
        }

        // MARK: Access

        @Test(.timeLimit(.minutes(20))) func realmsDisappearWithMembershipAndRole() async throws {
            let (worker, manager) = (try await installation.person(.worker), try await installation.person(.manager))
            let colleague = try await installation.person(.colleague)
            let (title, detail) = ("Paint the fence", "Only the side of the street")
            try await run(worker, manager, colleague) {
                let realm = try await addTeam("Painters", with: worker, manager)
                try await assign(title, detail, toTeam: "Painters", manager)
                try await worker.open("Tasks")
                try await worker.click(.choice, "My teams")
                try await worker.see(.link, title)
                #expect(try await !worker.storedRecords(with: realm).isEmpty)
                #expect(try await !worker.storedRecords(with: detail).isEmpty)
                try await manager.open("Team")
                try await manager.click(.link, "Painters")
                try await manager.click(.button, "Actions for \(worker.displayName)")
                try await manager.click(.button, "Remove from team")
                try await worker.see(.link, title, false)
                try await worker.expectStoreLacks(realm)
                try await worker.expectStoreLacks(detail)

                try await colleague.open("Tasks")
                try await installation.setRole("manager", of: .colleague)
                try await colleague.click(.choice, "All")
                try await colleague.see(.link, title)
                #expect(try await !colleague.storedRecords(with: "/manager").isEmpty)
                try await installation.setRole("worker", of: .colleague)
                try await colleague.see(.choice, "All", false)
                try await colleague.see(title, false)
                try await colleague.expectStoreLacks("/manager")
                try await colleague.expectStoreLacks(detail)
            }
        }

        /// Creates a team with one member, and returns the path of its realm.
        private func addTeam(_ name: String, with worker: AppPerson, _ manager: AppPerson) async throws -> String {
            try await manager.open("Team")
            try await manager.click(.button, "New team")
            try await manager.fill("Name", name)
            try await manager.click(.button, "Save")
            try await manager.fill("Add a member", worker.displayName)
            try await manager.see(.button, "Actions for \(worker.displayName)")
            let id = try await manager.value("location.hash.split('/').pop()")
            return "/teams/\(id)"
        }

        /// Creates a task of a team. Its title is in the notice of each member too, its description is not.
        private func assign(
            _ title: String, _ detail: String, toTeam team: String, _ manager: AppPerson
        ) async throws {
            try await manager.click(.link, "New task")
            try await manager.fill("Title", title)
            try await manager.fill("Description", detail)
            try await manager.fill("Team", team)
            try await manager.click(.button, "Create task")
            try await manager.see(.link, title)
        }
    }
}
