import Foundation
import Testing

/// A term or phrase that prose does not use.
struct BannedTerm: Sendable {
    /// ICU pattern, matched between `\b` boundaries without regard to case. A blank also matches a line break.
    let pattern: String
    let replacement: String

    init(_ pattern: String, _ replacement: String) {
        self.pattern = pattern
        self.replacement = replacement
    }
}

/// A use of a banned term that is kept.
private struct VocabularyException: Sendable {
    let path: String
    /// In lower case.
    let phrase: String
    let reason: String
}

/// Documents use the standard terms of the field, in short sentences, paragraphs and cells.
@Suite struct VocabularyTests {
    static let terms = [
        BannedTerm("told|tells?|telling", "report, return, notify, expose"),
        BannedTerm("says?|said|saying", "report, state, display, log"),
        BannedTerm("hears?|heard", "receive, detect"),
        BannedTerm("asks?|asked|asking", "query, poll, request, prompt"),
        BannedTerm("knows?|knew", "have, store, detect, verify"),
        BannedTerm("remembers?|remembered|forgets?|forgot|forgotten", "store, keep; expire, omit"),
        BannedTerm("wants?|wanted", "need, request, require"),
        BannedTerm("away", "unavailable, unreachable; “immediately” for “right away”"),
        BannedTerm("(?:go|goes|going|went|gone) on", "resume, continue; “stalled” for “does not go on”"),
        BannedTerm("(?:come|comes|came|coming) (?:back|again)", "recover, reconnect; “re-queued” for a key"),
        BannedTerm("(?:stand|stands|stood|standing) still", "is stalled, is idle"),
        BannedTerm("(?:stand|stands|stood|standing) by", "is a standby"),
        BannedTerm("anew|once more|again and again|over and over", "retry, re-queue, reprocess, rebuild, from scratch"),
        BannedTerm("whoever|whomever|whatever", "the caller, the client, an operator"),
        BannedTerm("(?:no|some|any|every)body", "the caller, the client, an operator, no consumer"),
        BannedTerm("someone|anyone|everyone|no one", "the caller, the client, a person, all people"),
        BannedTerm("(?:an?|the|one|each|every|two|per|of|next|last) looks?", "poll, collection cycle, scan, sample"),
        BannedTerm("rounds(?!.trip)", "polls, collection cycles, runs"),
        BannedTerm("(?:a|the|each|every|next|first|last|per) round(?!.trip)", "poll, collection cycle, run"),
        BannedTerm("turns?", "fair queueing, round robin"),
        BannedTerm("(?<!in )places?|in place of|in (?:its|their|his|her) place", "slot, location, row; “instead of”"),
        BannedTerm("on (?:its|the|their) way|under ?way", "in flight, in transit, in progress"),
        BannedTerm("courses?", "path, progress"),
        BannedTerm("news", "changes"),
        BannedTerm("words?", "message, text, term"),
        BannedTerm("so (?:long|many|much|few|often)", "the parameter (“after retryMax”); a limit"),
        BannedTerm("but for", "except"),
        BannedTerm("else", "otherwise, other"),
        BannedTerm("besides?", "alongside, in addition to, next to"),
        BannedTerm("by then", "meanwhile, by that time"),
        BannedTerm("left alone|leaves? alone", "backs off (Retry-After)"),
        BannedTerm("(?:put|puts|putting) aside", "defer"),
        BannedTerm("parked keys?", "deferred key"),
        BannedTerm("dead keys?", "dead-lettered key"),
        BannedTerm("waits? for a (?:person|human)", "needs manual action"),
        BannedTerm("decide[sd]? again", "reprocess, reconcile"),
        BannedTerm("routed (?:kinds?|objects?)", "published kind"),
        BannedTerm("waits? that grows?", "exponential backoff"),
        BannedTerm("push(?:es|ed)? back", "apply backpressure"),
        BannedTerm("the active one", "leader"),
        BannedTerm("another history", "a different timeline"),
        BannedTerm("whole checkpoints?", "consistent checkpoint"),
        BannedTerm("(?<!encrypted )(?<!encryption )at rest", "quiescent, idle"),
        BannedTerm("in the end", "converge, finally"),
        BannedTerm("mend(?:s|ed|ing)?", "fix"),
        BannedTerm("what differs", "differences, inconsistencies"),
        BannedTerm("lets? in|shuts?(?: \\w+){0,2} out", "grant access, revoke access"),
        BannedTerm("vouch(?:es|ed)?", "verify, assert"),
        BannedTerm("held environments?|environments? (?:is|are) held", "write-blocked"),
        BannedTerm("(?:take|takes|taken|taking|took).back", "roll back"),
        BannedTerm("permission to begin", "activation token"),
        BannedTerm("signposts?", "redirect record"),
        BannedTerm("probe's notes?|notes? of the probe", "probe object, synthetic probe"),
        BannedTerm("fares?", "consumer-group status"),
        BannedTerm("closes in", "time to drain"),
        BannedTerm("(?<!retention )headroom", "retention headroom"),
        BannedTerm("stand-?ins?", "emulator, fake"),
        BannedTerm("tortures?|chaos", "fault injection"),
        BannedTerm("story|stories|time lines?", "trace, audit trail, timeline"),
        BannedTerm("strangers?", "unauthenticated clients"),
        BannedTerm("(?:become|becomes|became|come|comes|came) of", "result, outcome"),
        BannedTerm("suite of services", "services, installation"),
    ]

    /// Only shrinks.
    private static let exceptions: [VocabularyException] = []
    private static let exceptionCountMax = 40

    static let openings: Set<String> = ["What", "Who", "Where", "How", "Since", "So"]
    private static let limits: [ProseBlock.Kind: Int] = [.paragraph: 80, .cell: 30]
    private static let sentenceWordsMax = 25

    private static let documents = TextFile.documents.map { document in
        (path: document.path, text: document.proseLines.joined(separator: "\n"), blocks: document.proseBlocks)
    }

    private static func regularExpression(_ pattern: String) throws -> NSRegularExpression {
        let pattern = pattern.replacing(" ", with: "[ \\n]")
        return try NSRegularExpression(pattern: "\\b(?:\(pattern))\\b", options: .caseInsensitive)
    }

    @Test func documentsUseStandardTerms() throws {
        var unused = Set(Self.exceptions.indices)
        for term in Self.terms {
            let expression = try Self.regularExpression(term.pattern)
            for (path, text, _) in Self.documents {
                for match in expression.matches(in: text, range: NSRange(text.startIndex..., in: text)) {
                    guard let range = Range(match.range, in: text) else { continue }
                    let phrase = text[range].replacing("\n", with: " ").lowercased()
                    if let used = Self.exceptions.firstIndex(where: { $0.path == path && $0.phrase == phrase }) {
                        unused.remove(used)
                        continue
                    }
                    let line = text[..<range.lowerBound].count { $0 == "\n" } + 1
                    Issue.record("\(path):\(line): “\(phrase)”; write: \(term.replacement)")
                }
            }
        }
        for exception in unused.map({ Self.exceptions[$0] }) {
            Issue.record("\(exception.path) does not need its exception for “\(exception.phrase)”: remove it")
        }
        #expect(Self.exceptions.count <= Self.exceptionCountMax)
    }

    @Test func documentsAreShortAndNameTheSubjectFirst() {
        for (path, _, blocks) in Self.documents {
            for block in blocks {
                let location = "\(path):\(block.line)"
                if let limit = Self.limits[block.kind], block.words.count > limit {
                    Issue.record("\(location): the \(block.kind) has \(block.words.count) words, more than \(limit)")
                }
                for sentence in block.sentences {
                    let start = sentence.prefix(6).joined(separator: " ")
                    if sentence.count > Self.sentenceWordsMax {
                        Issue.record(
                            "\(location): “\(start) …” has \(sentence.count) words, more than \(Self.sentenceWordsMax)")
                    }
                    let opening = String(sentence[0].drop { !$0.isLetter && $0 != "§" })
                    if Self.openings.contains(opening) {
                        Issue.record("\(location): “\(start) …”: begin with a noun, a type, a verb or the condition")
                    }
                }
            }
        }
    }

    @Test func readmeHasAtMost8KB() throws {
        let text = try #require(projectText("README.md"))
        #expect(text.utf8.count <= 8 * 1_024)
    }

    /// Prints the frequencies of house terms and of their replacements.
    @Test func standardTermsAreMoreFrequentThanHouseWords() throws {
        let wordCount = Self.documents.reduce(0) { sum, document in
            sum + document.blocks.reduce(0) { $0 + $1.words.count }
        }
        func frequency(_ pattern: String) throws -> Double {
            let expression = try Self.regularExpression(pattern)
            let count = Self.documents.reduce(0) { sum, document in
                let range = NSRange(document.text.startIndex..., in: document.text)
                return sum + expression.numberOfMatches(in: document.text, range: range)
            }
            return Double(count) * 10_000 / Double(wordCount)
        }
        let house = ["told|tells?", "nobody|somebody", "goe?s? on", "anew"]
        let standard = ["reports?|reported|reporting", "returns?|returned|returning"]
        let others = ["retry|retries|retried|retrying", "timeouts?|time[sd]? out"]
        print("documents: \(wordCount) words; per 10,000:")
        for pattern in house + standard + others {
            let value = try frequency(pattern)
            print("  \(pattern): \(String(format: "%.1f", value))")
            if house.contains(pattern) { #expect(value < 0.5, "\(pattern)") }
        }
        // Comparable projects have 17 to 55.
        let value = try frequency(standard.joined(separator: "|"))
        #expect(value >= 17)
    }
}
