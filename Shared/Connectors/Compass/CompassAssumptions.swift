/// What neither the vendor's pages nor its sample apps say, and what happens if it is otherwise than is assumed here.
/// `docs/integrators/back-ends/compass.md` has the same for operators.
///
/// | assumed | if it is wrong |
/// |---|---|
/// | A further page is asked for with `?pageNumber=2`, counted from 1; the first one without it. The vendor's sibling product (DevOps Plan) has `GET …/query/{id}?pageNumber=1`. | A server that ignores it gives the first page again: the reading fails, and says so. One that refuses it fails too. Nothing is cut silently. |
/// | A page holds as many rows as `resultSetOptions.pageSize` asks for; a shorter one is the last. | A server with a smaller bound of its own would end the reading too early. `fieldpost environment defects check` reads pages of two rows, and tells. |
/// | A row's values are in the order of the query's shown columns, one for each. | A row with another number of values is unreadable: it is reported, and nothing is concluded from its absence. Another order of as many is reported by `check`, which compares. |
/// | `history.action_timestamp`, in rows and in filters, is `yyyy-MM-dd HH:mm:ss` by the server's clock and in the server's zone (`convertToLocalTime`), without saying which. | Another format is no ``CompassTime``. Another zone is a constant shift between a row and the next filter, and at most what is read again; a filter in another zone than the rows would lose or repeat hours. |
/// | `history.dbid` is a column: the number of a row of the history in its database, as records have one. ClearQuest's history has it. | The query is refused and made without it: equal actions of one user on one record within a second count as one. |
/// | `COMP_OP_IN` takes some hundred values, and a filter may have another one below it (`childFilterNodes`). | A person's second query of changes is refused, which is logged; the first one is read. |
/// | `COMP_OP_LT`, `COMP_OP_IS_NULL`, `COMP_OP_IS_NOT_NULL` and `BOOL_OP_OR` are spelled as ClearQuest's constants. Only `EQ`, `NEQ`, `GT`, `IN` and `BOOL_OP_AND` are seen in REST. | The query is refused when it is made. |
/// | A path has the record type as queries name it (`Defect`). The sample app writes `defect` in paths. | Every record would be absent (404), which `check` tells. |
/// | A record's path has its display id (`SAMPL00000001`). DevOps Plan takes a `dbid` with `useDbid=true`. | Every record would be absent (404). |
/// | A 404 in Compass's own words is about the record, the query or the folder. | With a personal access token, a repository or database that is not there would look like absent records; a password's login says it. |
/// | The answer to a new record's `Edit` has its `id` before it is committed. | The creation ends as an unknown outcome, and nothing was saved. |
/// | An edit session belongs to the account, and outlives its token: `Revert` by a new login ends it. A session that nobody ends is ended by the server in time. | A revert that is refused counts as done. The record can be edited by others all the while: sessions do not lock. |
/// | `Edit` may bring fields, which lists of choices then depend on; DevOps Plan's client sends some. | The list that is read is that of the record as it was. |
/// | `Edit` answers with the record as it was last committed, but for what it brings and what the action writes by itself. | A session that shows an older record would not show what somebody else has just saved; the commit is refused then. |
/// | `Commit` needs no `actionName`: the session knows it. | Compass says what it misses, and the commit is refused. |
/// | After a `Revert`, a `Commit` of that session which arrives late is refused. | A command of unknown outcome could be done twice. |
/// | A commit that comes second is refused with a message and a 4xx. | With a 5xx it is an unknown outcome: the caller reads and compares, as it does anyway. |
/// | A refused login is 400, 401 or 403; a refused token is 401. | 403 for an expired token would not lead to a new login, and show as `unauthorized`. |
/// | A personal access token is sent as it is given, `Basic <token>`. | The account is refused. |
enum CompassAssumptions {
    /// The query of a page's address.
    static func query(ofPage number: Int) -> String { number == 1 ? "" : "?pageNumber=\(number)" }
}
