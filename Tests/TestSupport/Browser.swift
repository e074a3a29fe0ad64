package import Foundation
package import LocalCluster

/// A headless Chromium, controlled by the Chrome DevTools Protocol over two pipes.
package actor Browser {
    package struct Problem: Error, CustomStringConvertible {
        package let description: String
    }

    /// A page of the browser.
    package struct Page: Equatable, Sendable {
        fileprivate let target: String
        fileprivate let session: String
    }

    private let folder: String
    private let process: ClusterProcess
    private let commands: FileHandle
    private let answers: FileHandle
    private var waiting: [Int: CheckedContinuation<Data, any Error>] = [:]
    private var lastID = 0

    /// Starts the browser.
    ///
    /// - Parameter name: The name of its folder. A browser that ended can be started again with the same profile.
    /// - Throws: If Chromium is not installed (apt-get install chromium) or does not start.
    package init(in home: ClusterFolder, name: String = "chromium") async throws {
        folder = home.path + "/" + name
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let (commandPath, answerPath) = (folder + "/commands", folder + "/answers")
        for path in [commandPath, answerPath] {
            try? FileManager.default.removeItem(atPath: path)
            guard unsafe mkfifo(path, 0o600) == 0 else { throw Problem(description: "no pipe at \(path)") }
        }
        // Chromium reads commands from descriptor 3 and writes responses to descriptor 4, each terminated by a NUL.
        let options =
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe "
            + "--disable-renderer-backgrounding --disable-backgrounding-occluded-windows"
        process = try ClusterProcess(
            ClusterProcess.Command(
                executable: "/bin/sh",
                arguments: [
                    "-c", "exec chromium \(options) --user-data-dir=\"$0/profile\" about:blank 3<>\"$1\" 4<>\"$2\"",
                    folder, commandPath, answerPath,
                ],
                environment: [
                    "PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": FileManager.default.temporaryDirectory.path,
                    ClusterFolder.mark: home.markValue,
                ], logPath: folder + "/log"))
        guard let commands = FileHandle(forUpdatingAtPath: commandPath),
            let answers = FileHandle(forUpdatingAtPath: answerPath)
        else { throw Problem(description: "the pipes cannot be opened") }
        (self.commands, self.answers) = (commands, answers)
        Thread.detachNewThread { [self] in
            var rest = Data()
            while true {
                let data = answers.availableData
                if data.isEmpty { break }
                rest += data
                while let end = rest.firstIndex(of: 0) {
                    let message = Data(rest[rest.startIndex..<end])
                    rest = Data(rest[rest.index(after: end)...])
                    Task { await self.take(message) }
                }
            }
        }
        Task { [process] in
            // A browser that exits sends no more responses.
            while process.isRunning { try? await Task.sleep(for: .milliseconds(200)) }
            self.fail("chromium ended: \(process.logTail())")
        }
    }

    package func end() {
        process.kill9()
        try? commands.close()
    }

    // MARK: Pages

    /// Opens a page.
    ///
    /// - Parameter isInOwnWindow: Whether it is in a window of its own. Of one window, all pages except one are hidden:
    ///   their timers are slow.
    package func open(_ url: String, isInOwnWindow: Bool = false) async throws -> Page {
        let created = try await send("Target.createTarget", ["url": "about:blank", "newWindow": isInOwnWindow])
        let target = try text(created, "targetId")
        let attached = try await send("Target.attachToTarget", ["targetId": target, "flatten": true])
        let page = Page(target: target, session: try text(attached, "sessionId"))
        _ = try await send("Page.enable", on: page)
        try await go(to: url, on: page)
        return page
    }

    package func go(to url: String, on page: Page) async throws {
        _ = try await send("Page.navigate", ["url": url], on: page)
    }

    /// Closes a page without running its handlers, like a killed tab.
    package func close(_ page: Page) async throws {
        _ = try await send("Target.closeTarget", ["targetId": page.target])
    }

    /// Displays a page with a size in CSS pixels, and with the theme that its system prefers.
    ///
    /// The system prefers reduced motion, so that colours change at once.
    package func show(width: Int, height: Int, isDark: Bool, on page: Page) async throws {
        try await bringToFront(page)
        _ = try await send(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700], on: page)
        let features = [
            ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"],
            ["name": "prefers-reduced-motion", "value": "reduce"],
        ]
        _ = try await send("Emulation.setEmulatedMedia", ["features": features], on: page)
    }

    /// Cuts a page's network, its open connections included, or restores it.
    package func setOffline(_ isOffline: Bool, of page: Page) async throws {
        _ = try await send("Network.enable", on: page)
        _ = try await send(
            "Network.emulateNetworkConditions",
            ["offline": isOffline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1], on: page)
    }

    /// Deletes all IndexedDB databases of an origin, as a browser does when it runs out of storage.
    ///
    /// - Parameter page: Any page.
    package func clearDatabases(of origin: String, on page: Page) async throws {
        _ = try await send(
            "Storage.clearDataForOrigin", ["origin": origin, "storageTypes": "indexeddb"], on: page)
    }

    /// Returns the value of a JavaScript expression as text.
    package func value(_ expression: String, on page: Page) async throws -> String {
        let answer = try await send(
            "Runtime.evaluate", ["expression": "String(\(expression))", "returnByValue": true], on: page)
        let result = (answer["result"] as? [String: Any])?["value"] as? String
        return result ?? ""
    }

    /// Returns the result of a JavaScript expression that is a promise, as text.
    ///
    /// - Throws: ``Problem`` if the promise is rejected.
    package func result(of expression: String, on page: Page) async throws -> String {
        let answer = try await send(
            "Runtime.evaluate",
            [
                "expression": "(async () => String(await \(expression)))()", "returnByValue": true,
                "awaitPromise": true,
            ], on: page)
        let result = answer["result"] as? [String: Any]
        guard answer["exceptionDetails"] == nil, let text = result?["value"] as? String else {
            throw Problem(description: "\(expression): \(result?["description"] as? String ?? "\(answer)")")
        }
        return text
    }

    /// Waits until an expression is true.
    package func wait(_ expression: String, on page: Page, within: Duration = .seconds(240)) async throws {
        let deadline = ContinuousClock.now + within
        // A page that is loading has no document for a moment.
        while (try? await value("(() => { try { return !!(\(expression)) } catch { return false } })()", on: page))
            != "true"
        {
            guard .now < deadline else { throw Problem(description: "not within \(within): \(expression)") }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Size of the page's JavaScript heap in bytes after a garbage collection.
    package func heapBytes(of page: Page) async throws -> Double {
        _ = try await send("HeapProfiler.collectGarbage", on: page)
        let answer = try await send("Runtime.getHeapUsage", on: page)
        return (answer["usedSize"] as? Double) ?? 0
    }

    /// Displays a page. One in the background draws nothing, runs no animations and, after five minutes, its timers
    /// only once a minute.
    package func bringToFront(_ page: Page) async throws { _ = try await send("Page.bringToFront", on: page) }

    /// Returns a screenshot of the page as PNG.
    package func screenshot(of page: Page) async throws -> Data {
        try await bringToFront(page)
        let answer = try await send("Page.captureScreenshot", on: page)
        return Data(base64Encoded: try text(answer, "data")) ?? Data()
    }

    // MARK: Messages

    func send(
        _ method: String, _ parameters: [String: any Sendable] = [:], on page: Page? = nil
    ) async throws -> [String: Any] {
        lastID += 1
        let id = lastID
        var message: [String: Any] = ["id": id, "method": method, "params": parameters]
        if let page { message["sessionId"] = page.session }
        let data = try JSONSerialization.data(withJSONObject: message) + [0]
        let timer = Task {
            try await Task.sleep(for: .seconds(240))
            self.answer(id, .failure(Problem(description: "chromium does not answer \(method)")))
        }
        defer { timer.cancel() }
        let answer = try await withCheckedThrowingContinuation { continuation in
            waiting[id] = continuation
            do { try commands.write(contentsOf: data) } catch { self.answer(id, .failure(error)) }
        }
        let json = try JSONSerialization.jsonObject(with: answer) as? [String: Any] ?? [:]
        guard let result = json["result"] as? [String: Any] else {
            throw Problem(description: "\(method): \(String(decoding: answer, as: UTF8.self).prefix(300))")
        }
        return result
    }

    private func take(_ message: Data) {
        struct Answer: Decodable { let id: Int? }
        if let id = (try? JSONDecoder().decode(Answer.self, from: message))?.id { answer(id, .success(message)) }
    }

    private func answer(_ id: Int, _ result: Result<Data, any Error>) {
        waiting.removeValue(forKey: id)?.resume(with: result)
    }

    private func fail(_ reason: String) {
        for id in Array(waiting.keys) { answer(id, .failure(Problem(description: reason))) }
    }

    private func text(_ answer: [String: Any], _ name: String) throws -> String {
        guard let text = answer[name] as? String else { throw Problem(description: "no \(name) in an answer") }
        return text
    }
}
