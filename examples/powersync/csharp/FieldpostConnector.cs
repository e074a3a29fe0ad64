using System.Net.Http.Headers;
using System.Text;
using System.Text.Json;
using System.Text.Json.Nodes;
using PowerSync.Common.Client;
using PowerSync.Common.Client.Connection;
using PowerSync.Common.DB;
using PowerSync.Common.DB.Schema;

namespace Fieldpost;

/// <summary>An error of Fieldpost with a stable code, such as `offline` or `login-required`.</summary>
public class ConnectorException(string code, string message, int status = 0, JsonObject? problem = null)
    : Exception($"{code}: {message}")
{
    public string Code { get; } = code;
    public int Status { get; } = status;
    public JsonObject? Problem { get; } = problem;
}

/// <summary>Connects the PowerSync SDK for .NET to Fieldpost.</summary>
public partial class FieldpostConnector(
    string gateway, string onboarding, ILoginStore store, HttpClient client,
    Action<ConnectorException>? onLoginRequired = null) : IPowerSyncBackendConnector
{
    /// <summary>Local tables of the connector, for the app's schema.</summary>
    public static readonly TableFactory Rejections = new()
    {
        Name = "fieldpost_rejections",
        Columns =
        {
            ["table_name"] = ColumnType.Text, ["row_id"] = ColumnType.Text, ["operation"] = ColumnType.Text,
            ["type"] = ColumnType.Text, ["title"] = ColumnType.Text, ["detail"] = ColumnType.Text,
            ["data"] = ColumnType.Text, ["time"] = ColumnType.Text,
        },
        LocalOnly = true,
    };

    public static readonly TableFactory Uploads = new()
    {
        Name = "fieldpost_uploads", Columns = { ["sent"] = ColumnType.Integer }, LocalOnly = true,
    };

    private const string ProblemPrefix = "urn:fieldpost:problem:";
    private readonly SemaphoreSlim renewal = new(1);
    private DateTimeOffset renewedAt = DateTimeOffset.MinValue;
    private string? alignedClient;

    // Tokens: refused by the gateway, in use by the SDK, and to be replaced for the SDK.
    private string? refused, handedOut, replaced;

    /// <summary>Returns the endpoint and a valid token, or null if no person is signed in. Called by the SDK.</summary>
    public async Task<PowerSyncCredentials?> FetchCredentials()
    {
        // The SDK keeps credentials. It requests others if the stream refused them, or if the token ends.
        replaced = handedOut;
        // The stream of a moved environment answers 401. Only this request returns the new address (421).
        if (replaced != null)
        {
            try { await Request(HttpMethod.Get, "/v1/realms"); } catch (ConnectorException) { }
        }
        var login = await ValidLogin();
        handedOut = login?.AccessToken;
        return login == null
            ? null : new PowerSyncCredentials(login.Gateway, login.AccessToken, login.ExpiresAt.UtcDateTime);
    }

    /// <summary>Returns a login with a valid token, renewed if necessary; null if the person has to log in.</summary>
    private async Task<FieldpostLogin?> ValidLogin()
    {
        await renewal.WaitAsync();
        try
        {
            var login = await store.Load();
            if (login == null) { return null; }
            var now = DateTimeOffset.UtcNow;
            var isRefused = login.AccessToken == refused;
            var isInvalid = isRefused || login.ExpiresAt <= now;
            if (login.Credential == null) { return isInvalid ? null : login; }
            var isNearEnd = login.ExpiresAt < now.AddMinutes(5) && renewedAt < now.AddMinutes(-1);
            if (!isRefused && !isNearEnd && login.AccessToken != replaced) { return login; }
            try { return await Renew(login); }
            catch (ConnectorException error) when (error.Code == "login-required")
            {
                await store.Save(login with { Credential = null });
                onLoginRequired?.Invoke(error);
                return isInvalid ? null : login;
            }
            catch (ConnectorException) when (!isInvalid) { return login; }
        }
        finally { renewal.Release(); }
    }

    private async Task<FieldpostLogin> Renew(FieldpostLogin login)
    {
        var next = login;
        var body = Json(new JsonObject { ["credential"] = login.Credential });
        var data = await Send(HttpMethod.Post, login.Onboarding, "/v1/token", null, body, moved =>
        {
            next = next with { Onboarding = moved };
            return Task.CompletedTask;
        });
        next = next.WithToken(JsonNode.Parse(data)!.AsObject());
        // The next credential is stored before it is used.
        await store.Save(next);
        renewedAt = DateTimeOffset.UtcNow;
        refused = null;
        return next;
    }

    private static (byte[], string) Json(JsonNode body) =>
        (Encoding.UTF8.GetBytes(body.ToJsonString()), "application/json");

    /// <summary>
    /// Returns the content of a response. If the environment has moved (421), repeats the request there.
    /// </summary>
    private async Task<byte[]> Send(
        HttpMethod method, string address, string path, string? token = null, (byte[] Bytes, string Type)? body = null,
        Func<string, Task>? onMoved = null)
    {
        int status;
        byte[] content;
        try
        {
            using var timeout = new CancellationTokenSource(TimeSpan.FromSeconds(90));
            using var request = new HttpRequestMessage(method, address.TrimEnd('/') + path);
            if (token != null) { request.Headers.Authorization = new AuthenticationHeaderValue("Bearer", token); }
            if (body is { } sent)
            {
                request.Content = new ByteArrayContent(sent.Bytes);
                request.Content.Headers.ContentType = new MediaTypeHeaderValue(sent.Type);
            }
            using var response = await client.SendAsync(request, timeout.Token);
            status = (int)response.StatusCode;
            content = await response.Content.ReadAsByteArrayAsync(timeout.Token);
        }
        catch (Exception error) when (error is HttpRequestException or OperationCanceledException or IOException)
        {
            throw new ConnectorException("offline", $"The server is unreachable ({error.Message}).");
        }
        if (status is >= 200 and < 300) { return content; }
        JsonObject? problem = null;
        try { problem = JsonNode.Parse(content) as JsonObject; } catch (JsonException) { }
        var name = (string?)problem?["type"] ?? "";
        var code = name.StartsWith(ProblemPrefix) ? name[ProblemPrefix.Length..] : $"http-{status}";
        var moved = status == 421 ? (string?)problem?["baseURL"] : null;
        if (moved == null || onMoved == null)
        {
            var message = (string?)problem?["detail"] ?? (string?)problem?["title"] ?? $"The response is {status}.";
            throw new ConnectorException(code, message, status, problem);
        }
        await onMoved(moved.TrimEnd('/'));
        return await Send(method, moved, path, token, body);
    }

    /// <summary>Sends a request to the gateway with the person's token.</summary>
    private async Task<byte[]> Request(HttpMethod method, string path, (byte[], string)? body = null)
    {
        var login = await ValidLogin();
        if (login == null) { throw new ConnectorException("login-required", "No person is signed in.", 401); }
        try
        {
            return await Send(method, login.Gateway, path, login.AccessToken, body, async moved =>
                await store.Save((await store.Load() ?? login) with { Gateway = moved }));
        }
        catch (ConnectorException error) when (error.Status == 401)
        {
            refused = login.AccessToken;
            throw;
        }
    }

    /// <summary>Uploads entries, which are JSON already, and returns the response.</summary>
    private async Task<JsonObject> Post(string clientId, IEnumerable<long> numbers, IEnumerable<string> entries)
    {
        var text = $"{{\"clientId\":\"{clientId}\",\"entries\":[{string.Join(",", entries)}]}}";
        var data = await Request(HttpMethod.Post, "/v1/uploads", (Encoding.UTF8.GetBytes(text), "application/json"));
        var answer = JsonNode.Parse(data)!.AsObject();
        var results = answer["results"]?.AsArray().Select(result => result!.AsObject()).ToList();
        if (results != null && results.Select(result => (long)result["op_id"]!).SequenceEqual(numbers)
            && results.All(result => result["accepted"] != null || result["rejected"] != null))
        {
            return answer;
        }
        throw new ConnectorException("malformed-response", "The results are not those of the uploaded entries.");
    }

    /// <summary>
    /// Uploads the oldest entries of the queue, and stores rejections. The SDK retries 5 s after an error.
    /// </summary>
    public async Task UploadData(IPowerSyncDatabase database)
    {
        var clientId = await database.GetClientId();
        if (alignedClient != clientId)
        {
            await AlignNumbers(database, (long)(await Post(clientId, [], []))["expectedSequence"]!);
            alignedClient = clientId;
        }
        for (var countMax = 200; ;)
        {
            var batch = await database.GetCrudBatch(countMax);
            if (batch == null) { return; }
            var numbers = batch.Crud.Select(entry => (long)entry.ClientId).ToList();
            var rows = await database.GetAll<EntryRow>(Statement.Entries, [numbers[^1]]);
            await database.WriteTransaction(transaction => MarkSent(transaction, numbers[^1]));
            List<(long Number, JsonObject Problem)> rejections;
            try
            {
                var answer = await Post(clientId, numbers, rows.Select(row => row.entry));
                rejections = answer["results"]!.AsArray().Where(result => result!["rejected"] != null)
                    .Select(result => ((long)result!["op_id"]!, result["rejected"]!.AsObject())).ToList();
            }
            catch (ConnectorException error) when (error.Status == 413)
            {
                countMax = (numbers.Count + 1) / 2;
                if (numbers.Count > 1) { continue; }
                // No request can contain this entry.
                var problem = error.Problem ?? new JsonObject { ["type"] = $"{ProblemPrefix}body-too-large" };
                rejections = [(numbers[0], problem)];
            }
            var time = DateTimeOffset.UtcNow.ToString("O");
            // After a crash before `Complete`, the repeat stores the same rejections.
            await database.WriteTransaction(async transaction =>
            {
                foreach (var (number, problem) in rejections)
                {
                    // The tables are views, which have no upsert.
                    await transaction.Execute(Statement.RemoveRejection, [number.ToString()]);
                    await transaction.Execute(Statement.AddRejection, [
                        (string?)problem["type"], (string?)problem["title"], (string?)problem["detail"], time, number,
                    ]);
                }
            });
            await batch.Complete();
            return;
        }
    }

    private record EntryRow(string entry);
    private record NumberRow(long number);

    /// <summary>
    /// Renumbers waiting entries if the server has results of numbers that this database never sent.
    /// It was restored from a backup, or copied. New entries would get the stored results of other ones.
    /// </summary>
    private static Task AlignNumbers(IPowerSyncDatabase database, long expected) =>
        database.WriteTransaction(async transaction =>
        {
            var sent = (await transaction.Get<NumberRow>(Statement.Sent)).number;
            if (expected <= sent + 1) { return; }
            // Entries up to `sent` keep their numbers: they were sent, and a repeat is safe.
            var last = (await transaction.Get<NumberRow>(Statement.Last)).number;
            var unsent = (await transaction.Get<NumberRow>(Statement.Unsent, [sent, last + 1])).number;
            // The new numbers are above all old ones, so that they do not collide.
            var shift = Math.Max(expected, last + 1) - unsent;
            await transaction.Execute(Statement.Renumber, [shift, sent]);
            await transaction.Execute(Statement.RemoveCounter);
            await transaction.Execute(Statement.AddCounter, [last + shift]);
        });

    /// <summary>Records the highest number that was sent, before it is sent.</summary>
    private static async Task MarkSent(ITransaction transaction, long number)
    {
        await transaction.Execute(Statement.RemoveMark, [number]);
        await transaction.Execute(Statement.AddMark, [number]);
    }

    /// <summary>Uploads an image under a random UUID, before the row that refers to it. Repeats are safe.</summary>
    public Task PutImage(Guid id, byte[] bytes, string type = "image/jpeg") =>
        Request(HttpMethod.Put, $"/v1/blobs/{id}", (bytes, type));

    /// <summary>Downloads an image. It never changes, so an app keeps it.</summary>
    public Task<byte[]> GetImage(Guid id) => Request(HttpMethod.Get, $"/v1/blobs/{id}");

    /// <summary>
    /// Statements on the SDK's queue `ps_crud` and on the local tables. The connectors of all languages have the same.
    /// </summary>
    private static class Statement
    {
        public const string Entries = """
            SELECT json_set(json_insert(data, '$.data', NULL), '$.op_id', id, '$.tx_id', tx_id) AS entry
            FROM ps_crud WHERE id <= ? ORDER BY id
            """;
        public const string RemoveRejection = "DELETE FROM fieldpost_rejections WHERE id = ?";
        public const string AddRejection = """
            INSERT INTO fieldpost_rejections
            (id, table_name, row_id, operation, type, title, detail, data, time)
            SELECT CAST(id AS TEXT), json_extract(data, '$.type'), json_extract(data, '$.id'),
                json_extract(data, '$.op'), ?, ?, ?, json_extract(data, '$.data'), ? FROM ps_crud WHERE id = ?
            """;
        public const string RemoveMark = "DELETE FROM fieldpost_uploads WHERE id = 'sent' AND sent < ?";
        public const string AddMark = """
            INSERT INTO fieldpost_uploads (id, sent)
            SELECT 'sent', ? WHERE NOT EXISTS (SELECT 1 FROM fieldpost_uploads WHERE id = 'sent')
            """;
        public const string Sent = """
            SELECT coalesce((SELECT sent FROM fieldpost_uploads WHERE id = 'sent'),
            (SELECT min(id) - 1 FROM ps_crud), (SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number
            """;
        public const string Last =
            "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number";
        public const string Unsent = "SELECT coalesce((SELECT min(id) FROM ps_crud WHERE id > ?), ?) AS number";
        public const string Renumber = "UPDATE ps_crud SET id = id + ? WHERE id > ?";
        public const string RemoveCounter = "DELETE FROM sqlite_sequence WHERE name = 'ps_crud'";
        public const string AddCounter = "INSERT INTO sqlite_sequence (name, seq) VALUES ('ps_crud', ?)";
        public const string Count = "SELECT count(*) AS number FROM ps_crud";
    }
}
