/// Properties of Compass that are documented neither on the vendor's pages nor in its sample apps, and the effects if
/// an assumption is wrong. `docs/integrators/back-ends/compass.md` has the same list for operators.
///
/// | assumption | effect if wrong |
/// |---|---|
/// | A further page is requested with `?pageNumber=2`, counted from 1; the first one without it. The vendor's sibling product (DevOps Plan) has `GET …/query/{id}?pageNumber=1`. | If the server ignores or rejects it, the read fails with an error. No result is truncated silently. |
/// | A page has `resultSetOptions.pageSize` rows; a shorter one is the last. | A server with a smaller page size would end the read too early. `fieldpost environment defects check` reads pages of two rows and reports it. |
/// | A row has one value per displayed column of the query, in the same order. | A row with another number of values is reported as unreadable, and its absence proves nothing. Another order is reported by `check`. |
/// | `history.action_timestamp`, in rows and in filters, is `yyyy-MM-dd HH:mm:ss` of the server's clock in the server's unspecified time zone (`convertToLocalTime`). | Another format cannot be parsed as ``CompassTime``. Another zone is a constant shift between a row and the next filter, and at most what is read again; a filter in another zone than the rows would lose or repeat hours. |
/// | `history.dbid` is a column: the number of a row of the history in its database, as records have one. ClearQuest's history has it. | The query is refused and created without it: equal actions of one user on one record within a second count as one. |
/// | `COMP_OP_IN` accepts some hundred values, and a filter may have a child filter (`childFilterNodes`). | A person's second query of changes is refused, which is logged; the first one is read. |
/// | `BOOL_OP_OR` is spelled as ClearQuest's constant. REST examples have only `BOOL_OP_AND`. | The query is refused when it is created. |
/// | A path has the record type as queries name it (`Defect`). The sample app writes `defect` in paths. | Every record would be absent (404), which `check` reports. |
/// | A record's path has its display id (`SAMPL00000001`). DevOps Plan uses a `dbid` with `useDbid=true`. | Every record would be absent (404). |
/// | A 404 with Compass's own body concerns the record, the query or the folder. | With a personal access token, records of a missing repository or database would seem absent; a password's login reports it. |
/// | The response to a new record's `Edit` has its `id` before it is committed. | The creation ends with an unknown outcome, and nothing is saved. |
/// | An edit session belongs to the account and survives its token: `Revert` after a new login ends it. The server ends abandoned sessions eventually. | A refused revert counts as done. Other users can edit the record meanwhile: sessions do not lock. |
/// | `Edit` may contain fields that lists of choices depend on; DevOps Plan's client sends some. | The list is that of the unchanged record. |
/// | `Edit` returns the last committed record, except for the sent fields and the fields that the action writes. | A session with an older record would not show another user's latest change; the commit is then refused. |
/// | `Commit` needs no `actionName`, which the session has. | Compass reports the missing parameter, and the commit is refused. |
/// | After a `Revert`, a late `Commit` of that session is refused. | A command with an unknown outcome could be executed twice. |
/// | The second of two concurrent commits is refused with a message and a 4xx. | With a 5xx the outcome is unknown: the caller reads and compares, as in other cases. |
/// | A rejected login is 400, 401 or 403; a rejected token is 401. | 403 for an expired token would not cause a new login, and would be reported as `unauthorized`. |
/// | A personal access token is sent unchanged, `Basic <token>`. | The account is rejected. |
enum CompassAssumptions {
    /// Returns the query of a page's URL.
    static func query(ofPage number: Int) -> String { number == 1 ? "" : "?pageNumber=\(number)" }
}
