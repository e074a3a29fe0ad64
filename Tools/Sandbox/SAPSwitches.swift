/// The switches of the SAP emulator.
struct SAPSwitches: EmulatorSwitches {
    /// Released records wait for an approver (20); otherwise they are approved by their release (30).
    var approvalNeeded = true
    /// Records are saved as in process (10), independent of the request.
    var savesInProcess = false
    /// No record on or before this day, `yyyy-MM-dd`, may be created, changed or deleted.
    var lockedThrough: String?
    /// Maximum number of rows per listing; 0: no maximum.
    var rowsMax = 0

    func check() throws {
        guard rowsMax >= 0 else { throw EmulatorError("a number of rows is 0 or more") }
    }
}
