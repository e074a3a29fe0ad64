internal import BackendHTTP
package import BackendProtocol
internal import Model

/// An employee with what a person is known by.
private struct EconomicEmployee: EconomicRow {
    let number: Int
    let name: String?
    let email: String?
}

/// An employee as the time registration sees them.
private struct EconomicProjectEmployee: EconomicRow {
    let number: Int
    let isBarred: Bool?
}

extension EconomicBackend {
    /// Employees with their e-mail addresses; barred is who is not, or no more, somebody whose time can be registered.
    ///
    /// Source: the vendor's OpenAPI document of v20.0.0: `/employees` has `number`, `name` and an optional `email` of
    /// at most 50 characters, `/project-employees` has `number` and `isBarred`. Not said there, and assumed: that both
    /// number the same people, as a time entry's `employeeNumber` does; and that the address is the person's own.
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
