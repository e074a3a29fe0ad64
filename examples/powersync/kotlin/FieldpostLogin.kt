package com.example.fieldpost

import com.powersync.PowerSyncDatabase
import io.ktor.client.plugins.websocket.webSocket
import io.ktor.http.HttpMethod
import io.ktor.websocket.Frame
import io.ktor.websocket.readText
import kotlin.math.min
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.ExperimentalTime
import kotlin.time.Instant
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.delay
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import kotlinx.serialization.json.put

/** The login of one person. Store it encrypted: `credential` is a password. */
@Serializable
data class FieldpostLogin(
    val onboarding: String,
    val gateway: String,
    val accessToken: String = "",
    /** Expiry of the token, in milliseconds since 1970. */
    val expiresAt: Long = 0,
    /** Renews the token; null if the person has to log in when it ends. */
    val credential: String? = null,
)

/** Stores the login. `save` returns when it is stored. */
interface LoginStore {
    suspend fun load(): FieldpostLogin?
    suspend fun save(login: FieldpostLogin?)
}

/**
 * Logs a person in. Returns when the token is stored and the person's data is ready.
 *
 * `onProblem` gets a URL if another attempt in the same session may succeed.
 */
suspend fun FieldpostConnector.login(
    email: String, openURL: suspend (String) -> Unit,
    onProblem: suspend (ConnectorError, String?) -> Unit = { _, _ -> },
) {
    var login = FieldpostLogin(onboarding, gateway)
    val body = buildJsonObject { put("email", email) }.toString().encodeToByteArray()
    val data = send(HttpMethod.Post, onboarding, "/register_device", null, body) {
        login = login.copy(onboarding = it)
    }
    val session = Json.parseToJsonElement(data.decodeToString()).jsonObject
    val url = login.onboarding.replaceFirst("http", "ws") + "/sessions/" + session.text("session_id")
    val missing = mutableSetOf("token", "data ready")
    val handled = mutableSetOf<Long>()
    var failures = 0
    var isOffered = false
    withTimeoutOrNull(session["expires_in"]!!.jsonPrimitive.long.seconds) {
        while (missing.isNotEmpty()) {
            if (failures > 0) delay(min(500 shl min(failures, 5), 10_000).milliseconds)
            failures += 1
            runCatchingLost { client.webSocket(url) {
                if (!isOffered) openURL(session.text("login_url")!!)
                isOffered = true
                for (frame in incoming) {
                    val event = Json.parseToJsonElement((frame as? Frame.Text ?: continue).readText()).jsonObject
                    val id = event["id"]!!.jsonPrimitive.long
                    val payload = event["payload"]!!.jsonObject
                    val name = event.text("event")!!
                    if (handled.add(id) && name == "token") {
                        login = login.withToken(payload)
                        store.save(login)
                    } else if (name == "error") {
                        val error = ConnectorError(payload.text("code") ?: "", payload.text("message") ?: "")
                        onProblem(error, payload.text("login_url"))
                        if (payload.text("login_url") == null) throw error
                    }
                    missing.remove(name)
                    failures = 0
                    send(Frame.Text("""{"acknowledge":$id}"""))
                    if (missing.isEmpty()) break
                }
                val reason = if (missing.isEmpty()) null else closeReason.await()
                if (reason != null && reason.code >= 4000) {
                    throw ConnectorError("session-closed", "Close code ${reason.code}.")
                }
            } }
        }
    } ?: throw ConnectorError("session-expired", "The login took too long.")
}

/** A lost socket is opened again. Unacknowledged events are delivered again. */
private suspend fun runCatchingLost(body: suspend () -> Unit) {
    try { body() } catch (error: ConnectorError) { throw error } catch (error: CancellationException) { throw error }
    catch (_: Exception) { }
}

/** Ends the login and clears the database. Throws `queued-entries` unless `discard` is true. */
suspend fun FieldpostConnector.signOut(database: PowerSyncDatabase, discard: Boolean = false) {
    val count = database.get(COUNT) { it.getLong(0)!! }
    if (count > 0 && !discard) throw ConnectorError("queued-entries", "$count changes were not uploaded yet.")
    database.disconnectAndClear()
    val login = renewal.withLock { store.load().also { store.save(null) } }
    alignedClient = null
    val credential = login?.credential ?: return
    val body = buildJsonObject { put("credential", credential) }.toString().encodeToByteArray()
    try { send(HttpMethod.Post, login.onboarding, "/v1/logout", null, body) } catch (_: ConnectorError) { }
}

/** Returns the login with the token of an event or of a renewal. */
@OptIn(ExperimentalTime::class)
internal fun FieldpostLogin.withToken(token: JsonObject) = copy(
    accessToken = token.text("access_token")!!,
    expiresAt = Instant.parse(token.text("expires_at")!!).toEpochMilliseconds(),
    credential = token.text("credential"),
)
