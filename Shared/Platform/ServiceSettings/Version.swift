/// The version of all services and tools, printed by `--version`.
package let fieldpostVersion = "0.1.0"
