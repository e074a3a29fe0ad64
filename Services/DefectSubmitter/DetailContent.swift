import Compass
import Essentials
import Model

/// Collects what a command reads, limited to the size of an object.
struct DetailContent {
    /// Limit on the bytes of a detail: an object has 64 KiB, including the request and the messages.
    static let bytesMax = 48 * 1_024
    /// Limit on the bytes of a form's fields, if shorter values are sufficient; the rest is for the choices.
    static let formFieldsBytesMax = 24 * 1_024
    /// Limit on the columns of a row.
    static let columnsMax = 100
    private static let columnNameBytesMax = 200
    /// Limits on the bytes of a value, tried in this order.
    private static let valueBytesMax = [Int.max, 16_384, 4_096, 1_024, 256, 64]

    // Bytes in addition to the texts: quotes, separators and the names of the members.
    private static let fieldBytes = 120
    private static let itemBytes = 64
    private static let elementBytes = 4

    private(set) var detail: DefectDetail
    /// Messages to the person about incomplete content.
    private(set) var messages: [String] = []
    private(set) var bytesLeft = Self.bytesMax

    init(readAt time: Timestamp) { detail = DefectDetail(readAt: time) }

    /// Adds the fields of a record. Long values are truncated.
    mutating func add(_ fields: [Field], bytesMax: Int = Self.bytesMax) {
        let sizes = fields.map { field in
            (Self.fieldBytes + field.name.jsonByteCount + (field.type?.jsonByteCount ?? 0), field.value.jsonByteCount)
        }
        let limit = min(bytesMax, bytesLeft)
        let valueMax =
            Self.valueBytesMax.first { valueMax in
                sizes.reduce(0) { $0 + $1.0 + min($1.1, valueMax) } <= limit
            } ?? Self.valueBytesMax[Self.valueBytesMax.count - 1]
        var included: [DefectDetail.Field] = []
        for (field, size) in zip(fields, sizes) {
            guard size.0 + min(size.1, valueMax) <= bytesLeft else { break }
            bytesLeft -= size.0 + min(size.1, valueMax)
            included.append(
                DefectDetail.Field(
                    name: field.name, type: field.type,
                    requiredness: DefectDetail.Field.Requiredness(field.requiredness),
                    value: field.isReadable ? field.value.prefix(jsonBytes: valueMax) : nil,
                    isTruncated: size.1 > valueMax ? true : nil))
        }
        detail.fields = included
        report(included.count { $0.isTruncated == true }, "values that are too long and are truncated")
        report(included.count { $0.value == nil }, "values that cannot be read")
        report(fields.count - included.count, "fields that are not included")
    }

    /// Adds the choices of fields that were added.
    mutating func add(_ lists: ChoiceLists) {
        for index in (detail.fields ?? []).indices {
            guard let name = detail.fields?[index].name, let list = lists.choices[name] else { continue }
            detail.fields?[index].choices = list
        }
        messages += lists.messages
    }

    /// Adds the actions of a record that are allowed in its state.
    mutating func add(_ actions: [RecordType.Action], in state: String) {
        let allowed = actions.compactMap { action -> DefectDetail.Action? in
            let operation: DefectCommand.Operation
            switch action.kind {
            case "_CHANGE_STATE": operation = .changeState
            case "_MODIFY": operation = .modify
            case "_DELETE": operation = .delete
            default: return nil
            }
            let isOfAnyState = action.sourceStates.isEmpty && operation != .changeState
            guard isOfAnyState || action.sourceStates.contains(state) else { return nil }
            let destination = action.destinationState.flatMap { $0.isEmpty ? nil : $0 }
            return DefectDetail.Action(operation: operation, name: action.name, state: destination)
        }
        let included = fitting(allowed) { $0.name.jsonByteCount + ($0.state?.jsonByteCount ?? 0) }
        detail.actions = included
        report(allowed.count - included.count, "actions that are not included")
    }

    /// Adds the queries and folders of folders, without the services' own queries.
    mutating func add(_ folders: [Folder]) {
        let items = folders.flatMap { folder in
            folder.items.filter { $0.isFolder || $0.isQuery && TemporaryQuery.madeAt($0.name) == nil }.map {
                DefectDetail.WorkspaceItem(
                    id: $0.id, name: $0.name, folder: folder.name, isFolder: $0.isFolder ? true : nil)
            }
        }
        let included = fitting(items) { $0.id.jsonByteCount + $0.name.jsonByteCount + $0.folder.jsonByteCount }
        detail.items = included
        report(items.count - included.count, "queries and folders that are not included")
    }

    /// Adds as many rows of a page as fit, at least one.
    ///
    /// - Parameter first: The first requested row, which is on this page.
    mutating func add(_ found: QueryPage, from first: Int) {
        let columns = found.columns.prefix(Self.columnsMax)
        let names = columns.map { $0.prefix(jsonBytes: Self.columnNameBytesMax) }
        bytesLeft -= names.reduce(0) { $0 + $1.jsonByteCount + Self.elementBytes }
        let valueMax = max(bytesLeft / max(columns.count, 1) - 2 * Self.elementBytes, 0)
        let offset = first % QueryPage.rowsMax
        let all = found.page.rows.dropFirst(offset).map { row in columns.map { row[$0] ?? "" } }
        let rows = fitting(all, overhead: Self.elementBytes) { row in
            row.reduce(0) { $0 + min($1.jsonByteCount, valueMax) + Self.elementBytes }
        }
        (detail.columns, detail.rows) = (names, rows.map { row in row.map { $0.prefix(jsonBytes: valueMax) } })
        detail.nextRow =
            rows.count < all.count
            ? first + rows.count : found.page.isLast ? nil : first - offset + QueryPage.rowsMax
        if let next = detail.nextRow, next > DefectCommand.fromRowMax {
            detail.nextRow = nil
            messages.append("The query has more rows than can be read")
        }
        report(found.columns.count - columns.count, "columns that are not included")
        report(rows.joined().count { $0.jsonByteCount > valueMax }, "values that are too long and are truncated")
        report(found.page.unreadable.count, "rows that cannot be read")
    }

    /// Adds the message that the choices of some fields were not read.
    mutating func reportUnreadLists(_ count: Int) {
        report(count, "fields whose choices were not read, unless 'choicesOf' names them")
    }

    private mutating func report(_ count: Int, _ what: String) {
        if count > 0 { messages.append("\(what): \(count)") }
    }

    /// Returns the first elements that fit, and takes their bytes.
    private mutating func fitting<Element>(
        _ elements: [Element], overhead: Int = Self.itemBytes, _ bytes: (Element) -> Int
    ) -> [Element] {
        var included: [Element] = []
        for element in elements {
            let count = overhead + bytes(element)
            guard count <= bytesLeft else { break }
            bytesLeft -= count
            included.append(element)
        }
        return included
    }
}

extension DefectDetail.Field.Requiredness {
    init(_ requiredness: Compass.Field.Requiredness) {
        self =
            switch requiredness {
            case .mandatory: .mandatory
            case .readOnly: .readOnly
            case .optional, .other: .optional
            }
    }
}

extension String {
    /// The bytes of the text in JSON, without its quotes.
    var jsonByteCount: Int {
        // An escaped byte may take six bytes.
        utf8.reduce(0) { $0 + ($1 < 0x20 ? 6 : $1 == 0x22 || $1 == 0x5C ? 2 : 1) }
    }

    /// The longest beginning with at most this number of bytes in JSON.
    func prefix(jsonBytes bytesMax: Int) -> String {
        var count = 0
        for index in unicodeScalars.indices {
            count += String(unicodeScalars[index]).jsonByteCount
            if count > bytesMax { return String(unicodeScalars[..<index]) }
        }
        return self
    }
}
