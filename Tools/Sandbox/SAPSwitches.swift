/// How the SAP sandbox behaves; `POST /sandbox/switches` changes those that are named.
struct SAPSwitches: Switches, Equatable {
    var faults = FaultSwitches()
    var texts = TextSwitches()
    /// Creations and changes that are refused as if a check of the customer's own had failed: a share from 0 to 1.
    var validationRate = 0.0
    /// Released records wait for an approver (20); otherwise they are approved by their release (30).
    var approvalNeeded = true
    /// Records are saved in process (10), whatever is asked for.
    var savesInProcess = false
    /// No record on or before this day, `yyyy-MM-dd`, may be created, changed or deleted.
    var lockedThrough: String?
    /// Rows of a listing of records, however many are asked for; 0: as many as that.
    var rowsMax = 0

    mutating func change(_ name: SwitchName, in values: KeyedDecodingContainer<SwitchName>) throws -> Bool {
        switch name.stringValue {
        case "validationRate": validationRate = try values.decode(Double.self, forKey: name)
        case "approvalNeeded": approvalNeeded = try values.decode(Bool.self, forKey: name)
        case "savesInProcess": savesInProcess = try values.decode(Bool.self, forKey: name)
        case "lockedThrough": lockedThrough = try values.decodeIfPresent(String.self, forKey: name)
        case "rowsMax": rowsMax = try values.decode(Int.self, forKey: name)
        default: return try texts.change(name, in: values) || faults.change(name, in: values)
        }
        return true
    }

    func check() throws {
        try faults.check()
        try texts.check()
        try FaultSwitches.check(rates: [validationRate])
        guard rowsMax >= 0 else { throw SandboxProblem(message: "a number of rows is 0 or more") }
    }

    private enum CodingKeys: CodingKey { case validationRate, approvalNeeded, savesInProcess, lockedThrough, rowsMax }

    /// All switches in one object.
    func encode(to encoder: any Encoder) throws {
        try faults.encode(to: encoder)
        try texts.encode(to: encoder)
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(validationRate, forKey: .validationRate)
        try values.encode(approvalNeeded, forKey: .approvalNeeded)
        try values.encode(savesInProcess, forKey: .savesInProcess)
        try values.encodeIfPresent(lockedThrough, forKey: .lockedThrough)
        try values.encode(rowsMax, forKey: .rowsMax)
    }
}
