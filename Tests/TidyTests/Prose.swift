import Foundation

/// A paragraph, list item, table cell or heading of a document.
struct ProseBlock: Sendable {
    enum Kind: String, Sendable { case paragraph, cell, heading }

    let kind: Kind
    /// Number of its first line.
    let line: Int
    fileprivate(set) var text: String

    var words: [Substring] { Self.words(in: text) }

    /// Tokens by sentence. A sentence ends with a full stop, exclamation or question mark, or with the block.
    var sentences: [[Substring]] {
        var sentences: [[Substring]] = [[]]
        for word in words {
            sentences[sentences.count - 1].append(word)
            let end = word.last { !"*_\"”)".contains($0) }
            if let end, ".!?".contains(end) { sentences.append([]) }
        }
        return sentences.filter { !$0.isEmpty }
    }

    private static func words(in text: String) -> [Substring] {
        text.split(whereSeparator: \.isWhitespace).filter { word in
            word.contains { $0.isLetter || $0.isNumber || $0 == "§" }
        }
    }
}

extension TextFile {
    /// The document's lines without fenced blocks, generated parts and tags. Code in backticks is replaced by `§`, a
    /// link by its text. Other lines are empty, so indices are line numbers - 1.
    var proseLines: [String] {
        var result = [String](repeating: "", count: lines.count)
        var isGenerated = false
        for (number, line) in unfenced {
            if line.hasPrefix("<!-- made by deploy/docs") { isGenerated = true }
            if !isGenerated {
                result[number - 1] = line.replacing(/`+[^`]+`+/, with: "§").replacing(/<[a-z!\/][^>]*>/, with: "")
                    .replacing(/!?\[([^\]]*)\]\([^)]*\)/) { $0.output.1 }
            }
            if line.hasPrefix("<!-- end -->") { isGenerated = false }
        }
        return result
    }

    var proseBlocks: [ProseBlock] {
        var blocks: [ProseBlock] = []
        var isOpen = false
        for (index, line) in proseLines.enumerated() {
            let text = line.trimmingCharacters(in: .whitespaces)
            let isContinued = isOpen
            isOpen = false
            if text.isEmpty { continue }
            if text.hasPrefix("#") {
                blocks.append(ProseBlock(kind: .heading, line: index + 1, text: text))
            } else if text.hasPrefix("|") {
                for cell in text.replacing("\\|", with: "¦").split(separator: "|") {
                    blocks.append(ProseBlock(kind: .cell, line: index + 1, text: String(cell)))
                }
            } else {
                isOpen = true
                if isContinued, text.prefixMatch(of: #/[-*+] |\d+\. /#) == nil {
                    blocks[blocks.count - 1].text += "\n" + text
                } else {
                    let item = text.trimmingPrefix(#/[-*+] |\d+\. /#)
                    blocks.append(ProseBlock(kind: .paragraph, line: index + 1, text: String(item)))
                }
            }
        }
        return blocks
    }
}
