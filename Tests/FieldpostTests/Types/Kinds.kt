// Generated: fieldpost schema generate kotlin
package com.example.fieldpost

import com.powersync.db.SqlCursor
import com.powersync.db.getBooleanOptional
import com.powersync.db.getDoubleOptional
import com.powersync.db.getLongOptional
import com.powersync.db.getString
import com.powersync.db.getStringOptional
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject

/** A statement of SQL with its parameters. */
class Statement(val sql: String, val parameters: List<Any?>)

/** The new value of a field that may be absent; null: none. */
class FieldUpdate<out Value>(val value: Value?)

private fun insert(table: String, id: String, columns: List<Pair<String, Any?>>) = Statement(
    "INSERT INTO \"$table\" (id${columns.joinToString("") { ", \"${it.first}\"" }}) " +
        "VALUES (?${", ?".repeat(columns.size)})",
    listOf<Any?>(id) + columns.map { it.second },
)

private fun update(table: String, id: String, columns: List<Pair<String, Any?>>) =
    columns.takeIf { it.isNotEmpty() }?.let {
        Statement(
            "UPDATE \"$table\" SET ${it.joinToString { "\"${it.first}\" = ?" }} WHERE id = ?",
            it.map { it.second } + id,
        )
    }

/** The types of own kinds. */
object Kinds {
    /** Only integrations write it. */
    data class Array(
        /** The object's id, followed by the path of its realm. */
        val id: String,
        val string: JsonObject?,
        val text: String?,
    ) {
        companion object {
            /** Reads a row. */
            fun of(row: SqlCursor) = Array(
                id = row.getString("id"),
                string = row.getStringOptional("string")?.let { Json.parseToJsonElement(it) as? JsonObject },
                text = row.getStringOptional("text"),
            )
        }
    }

    /** A row of the kind Error. */
    data class Error(
        /** The object's id, followed by the path of its realm. */
        val id: String,
        val error: String?,
    ) {
        companion object {
            /** Reads a row. */
            fun of(row: SqlCursor) = Error(
                id = row.getString("id"),
                error = row.getStringOptional("error"),
            )
        }
    }

    /**
     * An inspection of a site.
     * It ends a comment: * / and begins one: / *
     */
    data class Inspection(
        /** The object's id, followed by the path of its realm. */
        val id: String,
        /** Name of the site. */
        val site: String?,
        val state: State?,
        val day: String?,
        val seenAt: String?,
        val photos: JsonArray?,
        /** The position of the site. */
        val place: JsonObject?,
        val tags: JsonArray?,
        val counts: JsonObject?,
        val anything: String?,
        val score: Double?,
        val isUrgent: Boolean?,
        val steps: JsonArray?,
        val receipt: String?,
        val approval: String?,
        val level: String?,
    ) {
        @JvmInline
        value class State(val value: String) {
            companion object {
                val draft = State("draft")
                val sent = State("sent")
                val inProgress = State("in progress")
                val none = State("none")
                val value1st = State("1st")
                val value_ = State("")
                val entries = listOf<State>(draft, sent, inProgress, none, value1st, value_)
            }
        }

        /** The fields of a new row that people may write. */
        class New(
            site: String,
            state: State,
            level: String?,
            day: String? = null,
            seenAt: String? = null,
            photos: JsonArray? = null,
            place: JsonObject? = null,
            tags: JsonArray? = null,
            counts: JsonObject? = null,
            anything: String? = null,
            score: Double? = null,
            isUrgent: Boolean? = null,
            steps: JsonArray? = null,
        ) {
            private val columns: List<Pair<String, Any?>> = listOf(
                Pair("site", site),
                Pair("state", state.value),
                Pair("level", level),
                Pair("day", day),
                Pair("seenAt", seenAt),
                Pair("photos", photos?.toString()),
                Pair("place", place?.toString()),
                Pair("tags", tags?.toString()),
                Pair("counts", counts?.toString()),
                Pair("anything", anything),
                Pair("score", score),
                Pair("isUrgent", isUrgent),
                Pair("steps", steps?.toString()),
            )

            fun inUser(uuid: String, email: String) = insert("Inspection", "$uuid/users/$email", columns)
            fun inTeam(uuid: String, team: String) = insert("Inspection", "$uuid/teams/$team", columns)
        }

        /** A change of the fields that people may change; those that are null keep their values. */
        class Change(
            state: State? = null,
            day: FieldUpdate<String>? = null,
            photos: FieldUpdate<JsonArray>? = null,
            place: FieldUpdate<JsonObject>? = null,
            approval: FieldUpdate<String>? = null,
            level: FieldUpdate<String>? = null,
        ) {
            private val columns: List<Pair<String, Any?>> = listOfNotNull(
                state?.let { Pair("state", it.value) },
                day?.let { Pair("day", it.value) },
                photos?.let { Pair("photos", it.value?.toString()) },
                place?.let { Pair("place", it.value?.toString()) },
                approval?.let { Pair("approval", it.value) },
                level?.let { Pair("level", it.value) },
            )

            /** Changes a row; null if no field is given. */
            fun of(id: String): Statement? = update("Inspection", id, columns)
        }

        companion object {
            /** Reads a row. */
            fun of(row: SqlCursor) = Inspection(
                id = row.getString("id"),
                site = row.getStringOptional("site"),
                state = row.getStringOptional("state")?.let { State(it) },
                day = row.getStringOptional("day"),
                seenAt = row.getStringOptional("seenAt"),
                photos = row.getStringOptional("photos")?.let { Json.parseToJsonElement(it) as? JsonArray },
                place = row.getStringOptional("place")?.let { Json.parseToJsonElement(it) as? JsonObject },
                tags = row.getStringOptional("tags")?.let { Json.parseToJsonElement(it) as? JsonArray },
                counts = row.getStringOptional("counts")?.let { Json.parseToJsonElement(it) as? JsonObject },
                anything = row.getStringOptional("anything"),
                score = row.getDoubleOptional("score"),
                isUrgent = row.getBooleanOptional("isUrgent"),
                steps = row.getStringOptional("steps")?.let { Json.parseToJsonElement(it) as? JsonArray },
                receipt = row.getStringOptional("receipt"),
                approval = row.getStringOptional("approval"),
                level = row.getStringOptional("level"),
            )

            /** Deletes a row. */
            fun delete(id: String) = Statement("DELETE FROM \"Inspection\" WHERE id = ?", listOf(id))
        }
    }

    /** A row of the kind Kind. */
    data class Kind(
        /** The object's id, followed by the path of its realm. */
        val id: String,
        val `in`: Boolean?,
        val `var`: Long?,
        val `when`: Double?,
    ) {
        /** The fields of a new row that people may write. */
        class New(
            `in`: Boolean,
            `var`: Long? = null,
            `when`: Double? = null,
        ) {
            private val columns: List<Pair<String, Any?>> = listOf(
                Pair("in", `in`),
                Pair("var", `var`),
                Pair("when", `when`),
            )

            fun inTeam(uuid: String, team: String) = insert("Kind", "$uuid/teams/$team", columns)
        }

        /** A change of the fields that people may change; those that are null keep their values. */
        class Change(
            `in`: Boolean? = null,
            `var`: FieldUpdate<Long>? = null,
            `when`: FieldUpdate<Double>? = null,
        ) {
            private val columns: List<Pair<String, Any?>> = listOfNotNull(
                `in`?.let { Pair("in", it) },
                `var`?.let { Pair("var", it.value) },
                `when`?.let { Pair("when", it.value) },
            )

            /** Changes a row; null if no field is given. */
            fun of(id: String): Statement? = update("Kind", id, columns)
        }

        companion object {
            /** Reads a row. */
            fun of(row: SqlCursor) = Kind(
                id = row.getString("id"),
                `in` = row.getBooleanOptional("in"),
                `var` = row.getLongOptional("var"),
                `when` = row.getDoubleOptional("when"),
            )
        }
    }

    /** A row of the kind NewKind. */
    data class NewKind(
        /** The object's id, followed by the path of its realm. */
        val id: String,
        val a: String?,
    ) {
        /** A change of the fields that people may change; those that are null keep their values. */
        class Change(
            a: FieldUpdate<String>? = null,
        ) {
            private val columns: List<Pair<String, Any?>> = listOfNotNull(
                a?.let { Pair("a", it.value) },
            )

            /** Changes a row; null if no field is given. */
            fun of(id: String): Statement? = update("NewKind", id, columns)
        }

        companion object {
            /** Reads a row. */
            fun of(row: SqlCursor) = NewKind(
                id = row.getString("id"),
                a = row.getStringOptional("a"),
            )
        }
    }

    /** A row of the kind String. */
    data class String_(
        /** The object's id, followed by the path of its realm. */
        val id: String,
        val `class`: String?,
        val self: String?,
        val init: String?,
        val fields: String?,
        val new: JsonObject?,
        val day: JsonObject?,
        val func: Func?,
    ) {
        @JvmInline
        value class Func(val value: String) {
            companion object {
                val `class` = Func("class")
                val self = Func("self")
                val allCases = Func("allCases")
                val entries = listOf<Func>(`class`, self, allCases)
            }
        }

        /** The fields of a new row that people may write. */
        class New(
            `class`: String,
            self: String? = null,
            init: String? = null,
            fields: String? = null,
            new: JsonObject? = null,
            day: JsonObject? = null,
            func: Func? = null,
        ) {
            private val columns: List<Pair<String, Any?>> = listOf(
                Pair("class", `class`),
                Pair("self", self),
                Pair("init", init),
                Pair("fields", fields),
                Pair("new", new?.toString()),
                Pair("day", day?.toString()),
                Pair("func", func?.value),
            )

            fun inManager(uuid: String) = insert("String", "$uuid/manager", columns)
        }

        /** A change of the fields that people may change; those that are null keep their values. */
        class Change(
            `class`: String? = null,
            self: FieldUpdate<String>? = null,
            init: FieldUpdate<String>? = null,
            fields: FieldUpdate<String>? = null,
            new: FieldUpdate<JsonObject>? = null,
            day: FieldUpdate<JsonObject>? = null,
            func: FieldUpdate<Func>? = null,
        ) {
            private val columns: List<Pair<String, Any?>> = listOfNotNull(
                `class`?.let { Pair("class", it) },
                self?.let { Pair("self", it.value) },
                init?.let { Pair("init", it.value) },
                fields?.let { Pair("fields", it.value) },
                new?.let { Pair("new", it.value?.toString()) },
                day?.let { Pair("day", it.value?.toString()) },
                func?.let { Pair("func", it.value?.value) },
            )

            /** Changes a row; null if no field is given. */
            fun of(id: String): Statement? = update("String", id, columns)
        }

        companion object {
            /** Reads a row. */
            fun of(row: SqlCursor) = String_(
                id = row.getString("id"),
                `class` = row.getStringOptional("class"),
                self = row.getStringOptional("self"),
                init = row.getStringOptional("init"),
                fields = row.getStringOptional("fields"),
                new = row.getStringOptional("new")?.let { Json.parseToJsonElement(it) as? JsonObject },
                day = row.getStringOptional("day")?.let { Json.parseToJsonElement(it) as? JsonObject },
                func = row.getStringOptional("func")?.let { Func(it) },
            )

            /** Deletes a row. */
            fun delete(id: String) = Statement("DELETE FROM \"String\" WHERE id = ?", listOf(id))
        }
    }
}
