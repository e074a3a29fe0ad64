/// Returns the name closest to `name`, if it is similar enough for a suggestion.
package func nearest(to name: String, among names: [String]) -> String? {
    let ranked = names.map { (name: $0, distance: editDistance(name, $0)) }
    guard let best = ranked.min(by: { ($0.distance, $0.name) < ($1.distance, $1.name) }) else { return nil }
    return best.distance <= max(2, name.utf8.count / 4) ? best.name : nil
}

/// The Levenshtein distance in bytes.
private func editDistance(_ left: String, _ right: String) -> Int {
    let right = Array(right.utf8)
    var row = Array(0...right.count)
    for (i, byte) in left.utf8.enumerated() {
        var diagonal = row[0]
        row[0] = i + 1
        for (j, other) in right.enumerated() {
            let above = row[j + 1]
            row[j + 1] = min(above + 1, row[j] + 1, diagonal + (byte == other ? 0 : 1))
            diagonal = above
        }
    }
    return row[right.count]
}
