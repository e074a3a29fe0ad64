/// A language for the tables and views of an app with a PowerSync SDK.
enum SchemaLanguage: String, CaseIterable, Sendable {
    case javascript, swift, kotlin, dart, csharp
    /// Only the statements of the views.
    case sql

    /// Returns the text of a source file.
    func source(of tables: [TableDescription]) -> String {
        let statements = tables.flatMap(\.views).flatMap(\.statements)
        let text =
            switch self {
            case .javascript: Self.javaScript(tables, statements)
            case .swift: Self.swift(tables, statements)
            case .kotlin: Self.kotlin(tables, statements)
            case .dart: Self.dart(tables, statements)
            case .csharp: Self.cSharp(tables, statements)
            case .sql: statements.map { "\($0);" }.joined(separator: "\n")
            }
        let comment = self == .sql ? "--" : "//"
        return "\(comment) Generated: fieldpost schema generate powersync --language \(rawValue)\n\(text)\n"
    }
}

// MARK: Languages

extension SchemaLanguage {
    private static func javaScript(_ tables: [TableDescription], _ statements: [String]) -> String {
        """
        import { column, Table } from "@powersync/common";

        /** Tables of the kinds. */
        export const tables = {
        \(lines(tables) { table in
            """
                \(table.name): new Table({
            \(lines(table.fields) { "        \($0.name): column.\($0.columnType)," })
                }),
            """
        })
        };

        /** Statements that replace the views of lists and objects. */
        export const views = [
        \(lines(statements) { indented("`\($0)`,", by: 4) })
        ];
        """
    }

    private static func swift(_ tables: [TableDescription], _ statements: [String]) -> String {
        """
        import PowerSync

        /// Tables of the kinds.
        let tables: [Table] = [
        \(lines(tables) { table in
            """
                Table(
                    name: "\(table.name)",
                    columns: [
            \(lines(table.fields) { "            .\($0.columnType)(\"\($0.name)\")," })
                    ]),
            """
        })
        ]

        /// Statements that replace the views of lists and objects.
        let views: [String] = [
        \(lines(statements) { indented("\(quotes)\n\($0)\n\(quotes),", by: 4) })
        ]
        """
    }

    private static func kotlin(_ tables: [TableDescription], _ statements: [String]) -> String {
        """
        package com.example.fieldpost

        import com.powersync.db.schema.Column
        import com.powersync.db.schema.Table

        /** Tables of the kinds. */
        val tables: List<Table> = listOf(
        \(lines(tables) { table in
            """
                Table(
                    "\(table.name)",
                    listOf(
            \(lines(table.fields) { "            Column.\($0.columnType)(\"\($0.name)\")," })
                    ),
                ),
            """
        })
        )

        /** Statements that replace the views of lists and objects. */
        val views: List<String> = listOf(
        \(lines(statements) { indented("\(quotes)\n\($0)\n\(quotes).trimIndent(),", by: 4) })
        )
        """
    }

    private static func dart(_ tables: [TableDescription], _ statements: [String]) -> String {
        """
        import 'package:powersync/powersync.dart';

        /// Tables of the kinds.
        const tables = [
        \(lines(tables) { table in
            """
              Table('\(table.name)', [
            \(lines(table.fields) { "    Column.\($0.columnType)('\($0.name)')," })
              ]),
            """
        })
        ];

        /// Statements that replace the views of lists and objects.
        const views = [
        \(lines(statements) { indented("r'''\n\($0)\n''',", by: 2) })
        ];
        """
    }

    private static func cSharp(_ tables: [TableDescription], _ statements: [String]) -> String {
        """
        using PowerSync.Common.DB.Schema;

        namespace Fieldpost;

        /// <summary>Tables and views of the kinds.</summary>
        public static class FieldpostSchema
        {
            /// <summary>Tables of the kinds.</summary>
            public static readonly TableFactory[] Tables =
            [
        \(lines(tables) { table in
            """
                    new()
                    {
                        Name = "\(table.name)",
                        Columns =
                        {
            \(lines(table.fields) { "                [\"\($0.name)\"] = ColumnType.\(name($0.columnType))," })
                        },
                    },
            """
        })
            ];

            /// <summary>Statements that replace the views of lists and objects.</summary>
            public static readonly string[] Views =
            [
        \(lines(statements) { indented("\(quotes)\n\($0)\n\(quotes),", by: 8) })
            ];
        }
        """
    }

    /// The delimiter of a text with several lines, from which Swift, Kotlin's `trimIndent` and C# remove indentation.
    private static let quotes = "\"\"\""

    private static func name(_ type: ColumnType) -> String {
        switch type {
        case .text: "Text"
        case .integer: "Integer"
        case .real: "Real"
        }
    }

    private static func lines<Element>(_ elements: [Element], _ text: (Element) -> String) -> String {
        elements.map(text).joined(separator: "\n")
    }

    private static func indented(_ text: String, by count: Int) -> String {
        lines(text.split(separator: "\n")) { String(repeating: " ", count: count) + $0 }
    }
}
