// Sends each entry whose device asks for it to its back end, once, and records the answer.
// Reads `entry.events`; the only writer of an entry's status and of `submission.ledger`.

import FoundationEssentials
import HTTP
import Pipeline
import Runtime

await serve("entry-submitter", settings: Settings.all) { context in
    let configuration = context.configuration
    let callMax = try configuration.duration(Settings.callMax)
    let rule = SubmissionRule(
        lease: callMax * (SubmissionCaller.callsMax + 2), settleMin: try configuration.duration(Settings.settleMin),
        retryMin: try configuration.duration(Settings.retryMin), retryMax: try configuration.duration(Settings.retryMax))
    var limits = WorkerLimits()
    limits.inFlightMax = try configuration.integer(Settings.inFlightMax)
    limits.attemptsMax = try configuration.integer(Settings.attemptsMax)
    let client = Client()
    let handler = EntryHandler(
        rule: rule, callMax: callMax, client: client, variables: ProcessInfo.processInfo.environment,
        now: { Int64(Date().timeIntervalSince1970 * 1_000) })
    return [try .handling("entry-submitter", handler, topics: ["entry.events"], limits: limits, context)]
}
