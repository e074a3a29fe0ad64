using System.Net.WebSockets;
using System.Text;
using System.Text.Json.Nodes;
using PowerSync.Common.Client;

namespace Fieldpost;

/// <summary>The login of one person. Store it encrypted: `Credential` is a password.</summary>
/// <param name="Credential">Renews the token; null if the person has to log in when it ends.</param>
public record FieldpostLogin(
    string Onboarding, string Gateway, string AccessToken, DateTimeOffset ExpiresAt, string? Credential)
{
    /// <summary>Returns the login with the token of an event or of a renewal.</summary>
    internal FieldpostLogin WithToken(JsonObject token) => this with
    {
        AccessToken = (string)token["access_token"]!,
        ExpiresAt = DateTimeOffset.Parse((string)token["expires_at"]!),
        Credential = (string?)token["credential"],
    };
}

/// <summary>Stores the login. `Save` returns when it is stored.</summary>
public interface ILoginStore
{
    Task<FieldpostLogin?> Load();
    Task Save(FieldpostLogin? login);
}

public partial class FieldpostConnector
{
    /// <summary>Logs a person in. Returns when the token is stored and the person's data is ready.</summary>
    /// <param name="onProblem">Gets a URL if another attempt in the same session may succeed.</param>
    public async Task Login(string email, Action<string> openURL, Action<ConnectorException, string?>? onProblem = null)
    {
        var login = new FieldpostLogin(onboarding.TrimEnd('/'), gateway.TrimEnd('/'), "", default, null);
        var body = Json(new JsonObject { ["email"] = email });
        var data = await Send(HttpMethod.Post, onboarding, "/register_device", null, body, moved =>
        {
            login = login with { Onboarding = moved };
            return Task.CompletedTask;
        });
        var session = JsonNode.Parse(data)!;
        var url = new Uri($"ws{login.Onboarding["http".Length..]}/sessions/{session["session_id"]}");
        using var expiry = new CancellationTokenSource(TimeSpan.FromSeconds((double)session["expires_in"]!));
        var missing = new HashSet<string> { "token", "data ready" };
        var handled = new HashSet<long>();
        var isOffered = false;
        var failures = 0;
        try
        {
            while (missing.Count > 0)
            {
                if (failures > 0) { await Task.Delay(Math.Min(500 << Math.Min(failures, 5), 10_000), expiry.Token); }
                failures += 1;
                using var socket = new ClientWebSocket();
                try
                {
                    await socket.ConnectAsync(url, expiry.Token);
                    if (!isOffered) { openURL((string)session["login_url"]!); }
                    isOffered = true;
                    while (missing.Count > 0 && await Receive(socket, expiry.Token) is { } text)
                    {
                        var message = JsonNode.Parse(text)!;
                        var (id, name) = ((long)message["id"]!, (string)message["event"]!);
                        var payload = message["payload"]!;
                        if (handled.Add(id) && name == "token")
                        {
                            login = login.WithToken(payload.AsObject());
                            await store.Save(login);
                        }
                        else if (name == "error")
                        {
                            var error = new ConnectorException((string)payload["code"]!, (string)payload["message"]!);
                            onProblem?.Invoke(error, (string?)payload["login_url"]);
                            if (payload["login_url"] == null) { throw error; }
                        }
                        missing.Remove(name);
                        failures = 0;
                        var acknowledgement = Encoding.UTF8.GetBytes($"{{\"acknowledge\":{id}}}");
                        await socket.SendAsync(acknowledgement, WebSocketMessageType.Text, true, expiry.Token);
                    }
                }
                catch (WebSocketException)
                {
                    // The socket is opened again. Unacknowledged events are delivered again.
                }
                if (missing.Count > 0 && (int?)socket.CloseStatus >= 4000)
                {
                    throw new ConnectorException("session-closed", $"Close code {(int?)socket.CloseStatus}.");
                }
            }
        }
        catch (OperationCanceledException)
        {
            throw new ConnectorException("session-expired", "The login took too long.");
        }
    }

    /// <summary>Returns the next text of a socket, or null if it was closed.</summary>
    private static async Task<string?> Receive(ClientWebSocket socket, CancellationToken cancellation)
    {
        using var text = new MemoryStream();
        var buffer = new byte[16_384];
        for (; ; )
        {
            var part = await socket.ReceiveAsync(buffer, cancellation);
            if (part.MessageType == WebSocketMessageType.Close) { return null; }
            text.Write(buffer, 0, part.Count);
            if (part.EndOfMessage) { return Encoding.UTF8.GetString(text.ToArray()); }
        }
    }

    /// <summary>Ends the login and clears the database. Throws `queued-entries` unless `discard` is true.</summary>
    public async Task SignOut(PowerSyncDatabase database, bool discard = false)
    {
        var count = (await database.Get<NumberRow>(Statement.Count)).number;
        if (count > 0 && !discard)
        {
            throw new ConnectorException("queued-entries", $"{count} changes were not uploaded yet.");
        }
        await database.DisconnectAndClear();
        await renewal.WaitAsync();
        FieldpostLogin? login;
        try
        {
            login = await store.Load();
            await store.Save(null);
        }
        finally { renewal.Release(); }
        alignedClient = null;
        if (login?.Credential == null) { return; }
        var body = Json(new JsonObject { ["credential"] = login.Credential });
        try { await Send(HttpMethod.Post, login.Onboarding, "/v1/logout", null, body); } catch (ConnectorException) { }
    }
}
