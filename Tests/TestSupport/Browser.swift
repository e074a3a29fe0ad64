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

    /// Faults of requests whose address matches a pattern such as `*/v1/mutations`.
    package struct Interception: Sendable {
        package enum Fate: Sendable {
            case pass, loseRequest, loseResponse
        }

        let pattern: String
        let fate: @Sendable (String) -> Fate

        /// - Parameter fate: Chooses the fate of a request by its body, before the request is sent.
        package init(_ pattern: String, fate: @escaping @Sendable (String) -> Fate) {
            (self.pattern, self.fate) = (pattern, fate)
        }
    }

    private let folder: String
    private let process: ClusterProcess
    private let commands: FileHandle
    private let answers: FileHandle
    private var waiting: [Int: CheckedContinuation<Data, any Error>] = [:]
    private var lastID = 0
    private var interceptions: [String: Interception] = [:]

    /// Starts the browser.
    ///
    /// - Parameters:
    ///   - name: The name of its folder. A browser that ended can be started again with the same profile.
    ///   - origins: Origins such as `http://one.localhost`, by the host and port that serve them.
    /// - Throws: If Chromium is not installed (apt-get install chromium) or does not start.
    package init(
        in home: ClusterFolder, name: String = "chromium", origins: [String: String] = [:]
    ) async throws {
        folder = home.path + "/" + name
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let (commandPath, answerPath) = (folder + "/commands", folder + "/answers")
        for path in [commandPath, answerPath] {
            try? FileManager.default.removeItem(atPath: path)
            guard unsafe mkfifo(path, 0o600) == 0 else { throw Problem(description: "no pipe at \(path)") }
        }
        // Chromium reads commands from descriptor 3 and writes responses to descriptor 4, each terminated by a NUL.
        let rules = origins.map { "MAP \($0.dropFirst("http://".count)) \($1)" }.joined(separator: ", ")
        let options =
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe "
            + "--host-resolver-rules='\(rules)'"
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
    package func open(
        _ url: String, isInOwnWindow: Bool = false, intercepting interception: Interception? = nil
    ) async throws -> Page {
        let created = try await send("Target.createTarget", ["url": "about:blank", "newWindow": isInOwnWindow])
        let target = try text(created, "targetId")
        let attached = try await send("Target.attachToTarget", ["targetId": target, "flatten": true])
        let page = Page(target: target, session: try text(attached, "sessionId"))
        _ = try await send("Page.enable", on: page)
        if let interception {
            interceptions[page.session] = interception
            _ = try await send("Fetch.enable", ["patterns": [["urlPattern": interception.pattern]]], on: page)
        }
        try await go(to: url, on: page)
        return page
    }

    package func go(to url: String, on page: Page) async throws {
        _ = try await send("Page.navigate", ["url": url], on: page)
    }

    /// Closes a page without running its handlers, like a killed tab.
    package func close(_ page: Page) async throws {
        interceptions[page.session] = nil
        _ = try await send("Target.closeTarget", ["targetId": page.target])
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

    /// Limits the storage of an origin.
    ///
    /// - Parameter bytes: `nil`: the browser's own limit.
    /// - Parameter page: Any page.
    package func setQuota(_ bytes: Int?, of origin: String, on page: Page) async throws {
        var parameters: [String: any Sendable] = ["origin": origin]
        if let bytes { parameters["quotaSize"] = bytes }
        _ = try await send("Storage.overrideQuotaForOrigin", parameters, on: page)
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

    /// Returns a screenshot of the page as PNG.
    package func screenshot(of page: Page) async throws -> Data {
        // A page in the background is not drawn.
        _ = try await send("Page.bringToFront", on: page)
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
        struct Message: Decodable {
            let id: Int?
            let method: String?
            let sessionId: String?
            let params: PausedRequest?
        }
        guard let decoded = try? JSONDecoder().decode(Message.self, from: message) else { return }
        if let id = decoded.id { answer(id, .success(message)) }
        if decoded.method == "Fetch.requestPaused", let request = decoded.params, let session = decoded.sessionId {
            Task { await self.end(request, of: Page(target: "", session: session)) }
        }
    }

    /// A request that waits for its fate, or, if it has a status, its response.
    private struct PausedRequest: Decodable {
        struct Content: Decodable { let postData: String? }

        let requestId: String?
        let request: Content?
        let responseStatusCode: Int?
    }

    private func end(_ paused: PausedRequest, of page: Page) async {
        guard let id = paused.requestId, let interception = interceptions[page.session] else { return }
        let fate = paused.responseStatusCode == nil ? paused.request?.postData.map(interception.fate) : .loseRequest
        // The page may be closed meanwhile.
        if fate == .loseRequest {
            _ = try? await send("Fetch.failRequest", ["requestId": id, "errorReason": "ConnectionReset"], on: page)
        } else {
            _ = try? await send(
                "Fetch.continueRequest", ["requestId": id, "interceptResponse": fate == .loseResponse], on: page)
        }
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
