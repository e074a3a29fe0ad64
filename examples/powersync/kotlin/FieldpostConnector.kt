@file:OptIn(kotlin.time.ExperimentalTime::class)

package com.example.fieldpost

import com.powersync.PowerSyncDatabase
import com.powersync.connectors.PowerSyncBackendConnector
import com.powersync.connectors.PowerSyncCredentials
import com.powersync.db.internal.PowerSyncTransaction
import com.powersync.db.schema.Column
import com.powersync.db.schema.Table
import io.ktor.client.HttpClient
import io.ktor.client.plugins.expectSuccess
import io.ktor.client.request.header
import io.ktor.client.request.request
import io.ktor.client.request.setBody
import io.ktor.client.statement.readRawBytes
import io.ktor.http.ContentType
import io.ktor.http.HttpMethod
import io.ktor.http.contentType
import kotlin.time.Clock
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.Instant
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withTimeout
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import kotlinx.serialization.json.put

/** An error of Fieldpost with a stable code, such as `offline` or `login-required`. */
class ConnectorError(
    val code: String, message: String, val status: Int = 0, val problem: JsonObject? = null,
) : Exception("$code: $message")

/** Connects the PowerSync SDK for Kotlin to Fieldpost. The login needs the plugin `WebSockets` in the client. */
class FieldpostConnector(
    gateway: String,
    onboarding: String,
    internal val store: LoginStore,
    internal val client: HttpClient,
    private val onLoginRequired: (ConnectorError) -> Unit = {},
) : PowerSyncBackendConnector() {
    internal val gateway = gateway.trimEnd('/')
    internal val onboarding = onboarding.trimEnd('/')
    internal val renewal = Mutex()
    private var renewedAt = Instant.DISTANT_PAST
    internal var alignedClient: String? = null

    /** Tokens: refused by the gateway, in use by the SDK, and to be replaced for the SDK. */
    private var refused: String? = null
    private var handedOut: String? = null
    private var replaced: String? = null

    /** Returns the endpoint and a valid token, or null if no person is signed in. Called by the SDK. */
    override suspend fun fetchCredentials(): PowerSyncCredentials? {
        // The SDK keeps credentials. It requests others if the stream refused them, or if the token ends.
        replaced = handedOut
        // The stream of a moved environment answers 401. Only this request returns the new address (421).
        if (replaced != null) {
            try { request(HttpMethod.Get, "/v1/realms") } catch (_: ConnectorError) { }
        }
        val login = validLogin()
        handedOut = login?.accessToken
        return login?.let { PowerSyncCredentials(endpoint = it.gateway, token = it.accessToken, userId = null) }
    }

    /** Returns a login with a valid token, renewed if necessary; null if the person has to log in. */
    private suspend fun validLogin(): FieldpostLogin? = renewal.withLock {
        val login = store.load() ?: return@withLock null
        val now = Clock.System.now()
        val end = Instant.fromEpochMilliseconds(login.expiresAt)
        val isRefused = login.accessToken == refused
        val isInvalid = isRefused || end <= now
        if (login.credential == null) return@withLock login.takeUnless { isInvalid }
        val isNearEnd = end - now < 5.minutes && now - renewedAt > 1.minutes
        if (!isRefused && !isNearEnd && login.accessToken != replaced) return@withLock login
        try {
            renew(login)
        } catch (error: ConnectorError) {
            if (error.code == "login-required") {
                store.save(login.copy(credential = null))
                onLoginRequired(error)
                login.takeUnless { isInvalid }
            } else if (isInvalid) {
                throw error
            } else {
                login
            }
        }
    }

    private suspend fun renew(login: FieldpostLogin): FieldpostLogin {
        var moved = login
        val body = buildJsonObject { put("credential", login.credential) }.toString().encodeToByteArray()
        val data = send(HttpMethod.Post, login.onboarding, "/v1/token", null, body) {
            moved = login.copy(onboarding = it)
        }
        val next = moved.withToken(Json.parseToJsonElement(data.decodeToString()).jsonObject)
        // The next credential is stored before it is used.
        store.save(next)
        renewedAt = Clock.System.now()
        refused = null
        return next
    }

    /** Returns the content of a response. If the environment has moved (421), repeats the request there. */
    internal suspend fun send(
        method: HttpMethod, base: String, path: String, token: String? = null, body: ByteArray? = null,
        type: ContentType = ContentType.Application.Json, onMoved: (suspend (String) -> Unit)? = null,
    ): ByteArray {
        val (status, content) = try {
            withTimeout(90.seconds) {
                val response = client.request(base + path) {
                    this.method = method
                    expectSuccess = false
                    if (token != null) header("Authorization", "Bearer $token")
                    if (body != null) { contentType(type); setBody(body) }
                }
                response.status.value to response.readRawBytes()
            }
        } catch (_: TimeoutCancellationException) {
            throw ConnectorError("offline", "The server did not respond.")
        } catch (error: CancellationException) {
            throw error
        } catch (error: Exception) {
            throw ConnectorError("offline", "The server is unreachable ($error).")
        }
        if (status in 200..299) return content
        val problem = runCatching { Json.parseToJsonElement(content.decodeToString()).jsonObject }.getOrNull()
        val name = problem?.text("type") ?: ""
        val code = if (name.startsWith(PREFIX)) name.removePrefix(PREFIX) else "http-$status"
        val message = problem?.text("detail") ?: problem?.text("title") ?: "The response is $status."
        val moved = if (status == 421) problem?.text("baseURL")?.trimEnd('/') else null
        if (moved == null || onMoved == null) throw ConnectorError(code, message, status, problem)
        onMoved(moved)
        return send(method, moved, path, token, body, type)
    }

    /** Sends a request to the gateway with the person's token. */
    private suspend fun request(
        method: HttpMethod, path: String, body: ByteArray? = null, type: ContentType = ContentType.Application.Json,
    ): ByteArray {
        val login = validLogin() ?: throw ConnectorError("login-required", "No person is signed in.", 401)
        try {
            return send(method, login.gateway, path, login.accessToken, body, type) { moved ->
                store.save((store.load() ?: login).copy(gateway = moved))
            }
        } catch (error: ConnectorError) {
            if (error.status == 401) {
                refused = login.accessToken
                invalidateCredentials()
            }
            throw error
        }
    }

    /** Uploads entries, which are JSON already, and returns the response. */
    private suspend fun post(client: String, numbers: List<Long>, entries: List<String>): JsonObject {
        val body = """{"clientId":"$client","entries":[${entries.joinToString(",")}]}""".encodeToByteArray()
        val text = request(HttpMethod.Post, "/v1/uploads", body).decodeToString()
        val answer = Json.parseToJsonElement(text).jsonObject
        val results = answer["results"]?.jsonArray?.map { it.jsonObject }
        val isComplete = results?.map { it["op_id"]?.jsonPrimitive?.long } == numbers &&
            results.all { "accepted" in it || "rejected" in it }
        if (isComplete) return answer
        throw ConnectorError("malformed-response", "The results are not those of the uploaded entries.")
    }

    /** Uploads the oldest entries of the queue, and stores rejections. The SDK retries 5 s after an error. */
    override suspend fun uploadData(database: PowerSyncDatabase) {
        val client = database.get("SELECT powersync_client_id()") { it.getString(0)!! }
        if (alignedClient != client) {
            alignNumbers(database, post(client, listOf(), listOf())["expectedSequence"]!!.jsonPrimitive.long)
            alignedClient = client
        }
        var countMax = 200
        while (true) {
            val batch = database.getCrudBatch(countMax) ?: return
            val numbers = batch.crud.map { it.clientId.toLong() }
            val entries = database.getAll(ENTRIES, listOf(numbers.last())) { it.getString(0)!! }
            database.writeTransaction { markSent(it, numbers.last()) }
            val rejections: List<Pair<Long, JsonObject>> = try {
                post(client, numbers, entries)["results"]!!.jsonArray.map { it.jsonObject }.mapNotNull { result ->
                    result["rejected"]?.let { result["op_id"]!!.jsonPrimitive.long to it.jsonObject }
                }
            } catch (error: ConnectorError) {
                if (error.status != 413) throw error
                countMax = (numbers.size + 1) / 2
                if (numbers.size > 1) continue
                // No request can contain this entry.
                val problem: Map<String, JsonElement> = error.problem ?: mapOf()
                val type = mapOf("type" to JsonPrimitive("${PREFIX}body-too-large"))
                listOf(numbers.last() to JsonObject(type + problem))
            }
            val time = Clock.System.now().toString()
            // After a crash before `complete`, the repeat stores the same rejections.
            database.writeTransaction { transaction ->
                for ((number, problem) in rejections) {
                    // The tables are views, which have no upsert.
                    transaction.execute(REMOVE_REJECTION, listOf(number.toString()))
                    val members = listOf("type", "title", "detail").map { problem.text(it) }
                    transaction.execute(ADD_REJECTION, members + listOf(time, number))
                }
            }
            batch.complete(null)
            return
        }
    }

    /**
     * Renumbers waiting entries if the server has results of numbers that this database never sent.
     * It was restored from a backup, or copied. New entries would get the stored results of other ones.
     */
    private suspend fun alignNumbers(database: PowerSyncDatabase, expected: Long) {
        database.writeTransaction { transaction ->
            fun number(sql: String, vararg parameters: Any) =
                transaction.get(sql, parameters.toList()) { it.getLong(0)!! }
            val sent = number(SENT)
            if (expected > sent + 1) {
                // Entries up to `sent` keep their numbers: they were sent, and a repeat is safe.
                val last = number(LAST)
                val unsent = number(UNSENT, sent, last + 1)
                // The new numbers are above all old ones, so that they do not collide.
                val shift = maxOf(expected, last + 1) - unsent
                transaction.execute(RENUMBER, listOf(shift, sent))
                transaction.execute(REMOVE_COUNTER)
                transaction.execute(ADD_COUNTER, listOf(last + shift))
            }
        }
    }

    /** Uploads an image under a random UUID, before the row that refers to it. Repeats are safe. */
    suspend fun putImage(id: String, bytes: ByteArray, type: ContentType = ContentType.Image.JPEG) {
        request(HttpMethod.Put, "/v1/blobs/$id", bytes, type)
    }

    /** Downloads an image. It never changes, so an app keeps it. */
    suspend fun getImage(id: String): ByteArray = request(HttpMethod.Get, "/v1/blobs/$id")

    companion object {
        /** Local tables of the connector, for the app's schema. */
        val localTables = listOf(
            Table.localOnly(
                "fieldpost_rejections",
                listOf("table_name", "row_id", "operation", "type", "title", "detail", "data", "time")
                    .map { Column.text(it) },
            ),
            Table.localOnly("fieldpost_uploads", listOf(Column.integer("sent"))),
        )
    }
}

internal fun JsonObject.text(name: String): String? = this[name]?.jsonPrimitive?.contentOrNull

/** Records the highest number that was sent, before it is sent. */
private fun markSent(transaction: PowerSyncTransaction, number: Long) {
    transaction.execute(REMOVE_MARK, listOf(number))
    transaction.execute(ADD_MARK, listOf(number))
}

private const val PREFIX = "urn:fieldpost:problem:"

// Statements on the SDK's queue `ps_crud` and on the local tables. The connectors of all languages have the same.
private const val ENTRIES = """
    SELECT json_set(json_insert(data, '$.data', NULL), '$.op_id', id, '$.tx_id', tx_id) AS entry
    FROM ps_crud WHERE id <= ? ORDER BY id"""
private const val REMOVE_REJECTION = "DELETE FROM fieldpost_rejections WHERE id = ?"
private const val ADD_REJECTION = """
    INSERT INTO fieldpost_rejections
    (id, table_name, row_id, operation, type, title, detail, data, time)
    SELECT CAST(id AS TEXT), json_extract(data, '$.type'), json_extract(data, '$.id'),
        json_extract(data, '$.op'), ?, ?, ?, json_extract(data, '$.data'), ? FROM ps_crud WHERE id = ?"""
private const val REMOVE_MARK = "DELETE FROM fieldpost_uploads WHERE id = 'sent' AND sent < ?"
private const val ADD_MARK = """
    INSERT INTO fieldpost_uploads (id, sent)
    SELECT 'sent', ? WHERE NOT EXISTS (SELECT 1 FROM fieldpost_uploads WHERE id = 'sent')"""
private const val SENT = """
    SELECT coalesce((SELECT sent FROM fieldpost_uploads WHERE id = 'sent'),
    (SELECT min(id) - 1 FROM ps_crud), (SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number"""
private const val LAST = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number"
private const val UNSENT = "SELECT coalesce((SELECT min(id) FROM ps_crud WHERE id > ?), ?) AS number"
private const val RENUMBER = "UPDATE ps_crud SET id = id + ? WHERE id > ?"
private const val REMOVE_COUNTER = "DELETE FROM sqlite_sequence WHERE name = 'ps_crud'"
private const val ADD_COUNTER = "INSERT INTO sqlite_sequence (name, seq) VALUES ('ps_crud', ?)"
internal const val COUNT = "SELECT count(*) AS number FROM ps_crud"
