internal import BackendHTTP
package import BackendProtocol
internal import Model

/// The identity of an employee.
private struct EconomicEmployee: EconomicRow {
    let number: Int
    let name: String?
    let email: String?
}

/// The time-registration status of an employee.
private struct EconomicProjectEmployee: EconomicRow {
    let number: Int
    let isBarred: Bool?
}

extension EconomicBackend {
    /// Returns employees with their e-mail addresses. Employees who cannot register time, or not any more, are barred.
    ///
    /// Source: the vendor's OpenAPI document of v20.0.0: `/employees` has `number`, `name` and an optional `email` of
    /// at most 50 characters, `/project-employees` has `number` and `isBarred`. Assumed without a source: both use the
    /// numbers of a time entry's `employeeNumber`, and the address is the person's own.
    package func people() async throws(BackendError) -> [BackendPersonProposal] {
        let employees = try await connection.rows("/employees", as: EconomicEmployee.self)
        let registered = try await connection.rows("/project-employees", as: EconomicProjectEmployee.self)
        let usable = Set(registered.rows.filter { !($0.isBarred ?? false) }.map(\.number))
        return employees.rows.map { employee in
            BackendPersonProposal(
                email: employee.email.flatMap { $0.isEmpty ? nil : $0 }, name: employee.name ?? "",
                reference: ["employeeNumber": String(employee.number)], isBarred: !usable.contains(employee.number))
        }
    }
}
