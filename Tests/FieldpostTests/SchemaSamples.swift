@testable import Fieldpost

/// The source files of a table with four columns and one view, without their first line.
enum SchemaSamples {
    struct Sample: Sendable {
        let language: SchemaLanguage
        let text: String
    }

    static let all = [
        Sample(
            language: .javascript,
            text: """
                import { column, Table } from "@powersync/common";

                /** Tables of the kinds. */
                export const tables = {
                    Sample: new Table({
                        title: column.text,
                        isDone: column.integer,
                        length: column.real,
                        codes: column.text,
                    }),
                };

                /** Statements that replace the views of lists and objects. */
                export const views = [
                    `DROP VIEW IF EXISTS "Sample_codes"`,
                    `CREATE VIEW "Sample_codes" AS
                \(query(4))`,
                ];
                """),
        Sample(
            language: .swift,
            text: """
                import PowerSync

                /// Tables of the kinds.
                let tables: [Table] = [
                    Table(
                        name: "Sample",
                        columns: [
                            .text("title"),
                            .integer("isDone"),
                            .real("length"),
                            .text("codes"),
                        ]),
                ]

                /// Statements that replace the views of lists and objects.
                let views: [String] = [
                \(blocks(4))
                ]
                """),
        Sample(
            language: .kotlin,
            text: """
                package com.example.fieldpost

                import com.powersync.db.schema.Column
                import com.powersync.db.schema.Table

                /** Tables of the kinds. */
                val tables: List<Table> = listOf(
                    Table(
                        "Sample",
                        listOf(
                            Column.text("title"),
                            Column.integer("isDone"),
                            Column.real("length"),
                            Column.text("codes"),
                        ),
                    ),
                )

                /** Statements that replace the views of lists and objects. */
                val views: List<String> = listOf(
                \(blocks(4, end: "\(quotes).trimIndent()"))
                )
                """),
        Sample(
            language: .dart,
            text: """
                import 'package:powersync/powersync.dart';

                /// Tables of the kinds.
                const tables = [
                  Table('Sample', [
                    Column.text('title'),
                    Column.integer('isDone'),
                    Column.real('length'),
                    Column.text('codes'),
                  ]),
                ];

                /// Statements that replace the views of lists and objects.
                const views = [
                \(blocks(2, start: "r'''", end: "'''"))
                ];
                """),
        Sample(
            language: .csharp,
            text: """
                using PowerSync.Common.DB.Schema;

                namespace Fieldpost;

                /// <summary>Tables and views of the kinds.</summary>
                public static class FieldpostSchema
                {
                    /// <summary>Tables of the kinds.</summary>
                    public static readonly TableFactory[] Tables =
                    [
                        new()
                        {
                            Name = "Sample",
                            Columns =
                            {
                                ["title"] = ColumnType.Text,
                                ["isDone"] = ColumnType.Integer,
                                ["length"] = ColumnType.Real,
                                ["codes"] = ColumnType.Text,
                            },
                        },
                    ];

                    /// <summary>Statements that replace the views of lists and objects.</summary>
                    public static readonly string[] Views =
                    [
                \(blocks(8))
                    ];
                }
                """),
    ]

    private static let quotes = "\"\"\""

    /// The query of the view, indented.
    private static func query(_ indentation: Int) -> String {
        let codes = #"source."codes""#
        return [
            #"SELECT source."id", element.key AS "codesIndex","#, #"    CAST(element.value AS TEXT) AS "value""#,
            #"FROM "Sample" AS source,"#,
            #"    json_each(CASE WHEN json_valid(\#(codes)) THEN \#(codes) END) AS element"#,
        ].map { String(repeating: " ", count: indentation) + $0 }.joined(separator: "\n")
    }

    /// The two statements, indented, between lines with delimiters.
    private static func blocks(_ indentation: Int, start: String = quotes, end: String = quotes) -> String {
        let space = String(repeating: " ", count: indentation)
        return """
            \(space)\(start)
            \(space)DROP VIEW IF EXISTS "Sample_codes"
            \(space)\(end),
            \(space)\(start)
            \(space)CREATE VIEW "Sample_codes" AS
            \(query(indentation))
            \(space)\(end),
            """
    }
}
