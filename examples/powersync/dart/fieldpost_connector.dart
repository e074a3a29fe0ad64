import 'dart:async';
import 'dart:convert';
import 'dart:math';
import 'dart:typed_data';

import 'package:http/http.dart' as http;
import 'package:powersync/powersync.dart';
import 'package:powersync/sqlite_async.dart';

import 'fieldpost_login.dart';

export 'fieldpost_login.dart';

/// Local tables of the connector, for the app's schema.
const localTables = [
  Table.localOnly('fieldpost_rejections', [
    Column.text('table_name'), Column.text('row_id'), Column.text('operation'), Column.text('type'),
    Column.text('title'), Column.text('detail'), Column.text('data'), Column.text('time'),
  ]),
  Table.localOnly('fieldpost_uploads', [Column.integer('sent')]),
];

/// Connects the PowerSync SDK for Dart to Fieldpost.
class FieldpostConnector extends PowerSyncBackendConnector {
  FieldpostConnector({
    required String gateway, required String onboarding, required this.store, http.Client? client,
    this.onLoginRequired,
  })  : gateway = withoutSlash(gateway),
        onboarding = withoutSlash(onboarding),
        client = client ?? http.Client();

  final String gateway, onboarding;
  final LoginStore store;
  final http.Client client;
  final void Function(ConnectorException)? onLoginRequired;
  Future<FieldpostLogin?>? renewal;
  DateTime _renewedAt = DateTime.utc(1970);
  String? alignedClient;

  // Tokens: refused by the gateway, in use by the SDK, and to be replaced for the SDK.
  String? _refused, _handedOut, _replaced;

  /// Returns the endpoint and a valid token, or null if no person is signed in. Called by the SDK.
  @override
  Future<PowerSyncCredentials?> fetchCredentials() async {
    // The SDK keeps credentials. It requests others if the stream refused them, or if the token ends.
    _replaced = _handedOut;
    // The stream of a moved environment answers 401. Only this request returns the new address (421).
    if (_replaced != null) {
      try {
        await _request('GET', '/v1/realms');
      } on ConnectorException {
        // The stream reports it.
      }
    }
    final login = await _validLogin();
    _handedOut = login?.accessToken;
    if (login == null) return null;
    return PowerSyncCredentials(endpoint: login.gateway, token: login.accessToken, expiresAt: login.expiresAt);
  }

  /// Returns a login with a valid token, renewed if necessary; null if the person has to log in.
  Future<FieldpostLogin?> _validLogin() =>
      renewal ??= _renewedLogin().whenComplete(() { renewal = null; });

  Future<FieldpostLogin?> _renewedLogin() async {
    final login = await store.load();
    if (login == null) return null;
    final now = DateTime.now();
    final isRefused = login.accessToken == _refused;
    final isInvalid = isRefused || login.expiresAt.isBefore(now);
    if (login.credential == null) return isInvalid ? null : login;
    final isNearEnd = login.expiresAt.difference(now) < const Duration(minutes: 5) &&
        now.difference(_renewedAt) > const Duration(minutes: 1);
    if (!isRefused && !isNearEnd && login.accessToken != _replaced) return login;
    try {
      return await _renew(login);
    } on ConnectorException catch (error) {
      if (error.code == 'login-required') {
        await store.save(login.withoutCredential());
        onLoginRequired?.call(error);
        return isInvalid ? null : login;
      }
      if (isInvalid) rethrow;
      return login;
    }
  }

  Future<FieldpostLogin> _renew(FieldpostLogin login) async {
    var next = login;
    final data = await send('POST', login.onboarding, '/v1/token', body: json({'credential': login.credential}),
        onMoved: (moved) async { next = next.at(onboarding: moved); });
    next = next.withToken(object(data));
    // The next credential is stored before it is used.
    await store.save(next);
    _renewedAt = DateTime.now();
    _refused = null;
    return next;
  }

  /// Returns the content of a response. If the environment has moved (421), repeats the request there.
  Future<Uint8List> send(String method, String base, String path, {String? token, Uint8List? body,
      String type = 'application/json', Future<void> Function(String)? onMoved}) async {
    final request = http.Request(method, Uri.parse(base + path));
    if (token != null) request.headers['Authorization'] = 'Bearer $token';
    if (body != null) {
      request.headers['Content-Type'] = type;
      request.bodyBytes = body;
    }
    final http.Response response;
    try {
      response = await client.send(request).then(http.Response.fromStream).timeout(const Duration(seconds: 90));
    } on Exception catch (error) {
      throw ConnectorException('offline', 'The server is unreachable ($error).');
    }
    final status = response.statusCode;
    if (status >= 200 && status < 300) return response.bodyBytes;
    Map<String, Object?>? problem;
    try {
      problem = object(response.bodyBytes);
    } catch (_) {
      // A proxy may send a page.
    }
    final name = problem?['type'] as String? ?? '';
    final code = name.startsWith(problemPrefix) ? name.substring(problemPrefix.length) : 'http-$status';
    final message = problem?['detail'] ?? problem?['title'] ?? 'The response is $status.';
    final moved = status == 421 ? problem?['baseURL'] as String? : null;
    if (moved == null || onMoved == null) {
      throw ConnectorException(code, '$message', status: status, problem: problem);
    }
    await onMoved(withoutSlash(moved));
    return send(method, withoutSlash(moved), path, token: token, body: body, type: type);
  }

  /// Sends a request to the gateway with the person's token.
  Future<Uint8List> _request(String method, String path, {Uint8List? body, String type = 'application/json'}) async {
    final login = await _validLogin();
    if (login == null) throw ConnectorException('login-required', 'No person is signed in.', status: 401);
    try {
      return await send(method, login.gateway, path, token: login.accessToken, body: body, type: type,
          onMoved: (moved) async => store.save((await store.load() ?? login).at(gateway: moved)));
    } on ConnectorException catch (error) {
      if (error.status == 401) {
        _refused = login.accessToken;
        invalidateCredentials();
      }
      rethrow;
    }
  }

  /// Uploads entries, which are JSON already, and returns the results and the expected sequence.
  Future<(List<Map<String, Object?>>, int)> _post(String id, List<int> numbers, Iterable<String> entries) async {
    final text = '{"clientId":"$id","entries":[${entries.join(',')}]}';
    final answer = object(await _request('POST', '/v1/uploads', body: utf8.encode(text)));
    final results = (answer['results'] as List<Object?>).cast<Map<String, Object?>>();
    final isComplete = results.map((each) => each['op_id']).join(',') == numbers.join(',') &&
        results.every((each) => each['accepted'] != null || each['rejected'] != null);
    if (isComplete) return (results, answer['expectedSequence'] as int);
    throw ConnectorException('malformed-response', 'The results are not those of the uploaded entries.');
  }

  /// Uploads the oldest entries of the queue, and stores rejections. The SDK retries 5 s after an error.
  @override
  Future<void> uploadData(PowerSyncDatabase database) async {
    final id = await database.getClientId();
    if (alignedClient != id) {
      await _alignNumbers(database, (await _post(id, [], [])).$2);
      alignedClient = id;
    }
    for (var countMax = 200;;) {
      final batch = await database.getCrudBatch(limit: countMax);
      if (batch == null) return;
      final numbers = [for (final entry in batch.crud) entry.clientId];
      final rows = await database.getAll(_entries, [numbers.last]);
      await database.writeTransaction((transaction) => _markSent(transaction, numbers.last));
      List<Map<String, Object?>> results;
      try {
        (results, _) = await _post(id, numbers, rows.map((row) => row['entry'] as String));
      } on ConnectorException catch (error) {
        if (error.status != 413) rethrow;
        countMax = (numbers.length + 1) ~/ 2;
        if (numbers.length > 1) continue;
        // No request can contain this entry.
        final problem = {'type': '${problemPrefix}body-too-large', ...?error.problem};
        results = [{'op_id': numbers.single, 'rejected': problem}];
      }
      final time = DateTime.now().toUtc().toIso8601String();
      // After a crash before `complete`, the repeat stores the same rejections.
      await database.writeTransaction((transaction) async {
        for (final result in results) {
          final rejected = result['rejected'] as Map<String, Object?>?;
          if (rejected == null) continue;
          // The tables are views, which have no upsert.
          await transaction.execute(_removeRejection, ['${result['op_id']}']);
          await transaction.execute(_addRejection,
              [rejected['type'], rejected['title'], rejected['detail'], time, result['op_id']]);
        }
      });
      await batch.complete();
      return;
    }
  }

  /// Renumbers waiting entries if the server has results of numbers that this database never sent.
  /// It was restored from a backup, or copied. New entries would get the stored results of other ones.
  Future<void> _alignNumbers(PowerSyncDatabase database, int expected) =>
      database.writeTransaction((transaction) async {
        Future<int> number(String sql, [List<Object?> parameters = const []]) async =>
            (await transaction.get(sql, parameters))['number'] as int;
        final sent = await number(_sent);
        if (expected <= sent + 1) return;
        // Entries up to `sent` keep their numbers: they were sent, and a repeat is safe.
        final last = await number(_last);
        final unsent = await number(_unsent, [sent, last + 1]);
        // The new numbers are above all old ones, so that they do not collide.
        final shift = max(expected, last + 1) - unsent;
        await transaction.execute(_renumber, [shift, sent]);
        await transaction.execute(_removeCounter);
        await transaction.execute(_addCounter, [last + shift]);
      });

  /// Uploads an image under a random UUID, before the row that refers to it. Repeats are safe.
  Future<void> putImage(String id, Uint8List bytes, {String type = 'image/jpeg'}) async {
    await _request('PUT', '/v1/blobs/$id', body: bytes, type: type);
  }

  /// Downloads an image. It never changes, so an app keeps it.
  Future<Uint8List> getImage(String id) => _request('GET', '/v1/blobs/$id');
}

/// Records the highest number that was sent, before it is sent.
Future<void> _markSent(SqliteWriteContext transaction, int number) async {
  await transaction.execute(_removeMark, [number]);
  await transaction.execute(_addMark, [number]);
}

// Statements on the SDK's queue `ps_crud` and on the local tables. The connectors of all languages have the same.
const _entries = r'''
    SELECT json_set(json_insert(data, '$.data', NULL), '$.op_id', id, '$.tx_id', tx_id) AS entry
    FROM ps_crud WHERE id <= ? ORDER BY id''';
const _removeRejection = 'DELETE FROM fieldpost_rejections WHERE id = ?';
const _addRejection = r'''
    INSERT INTO fieldpost_rejections
    (id, table_name, row_id, operation, type, title, detail, data, time)
    SELECT CAST(id AS TEXT), json_extract(data, '$.type'), json_extract(data, '$.id'),
        json_extract(data, '$.op'), ?, ?, ?, json_extract(data, '$.data'), ? FROM ps_crud WHERE id = ?''';
const _removeMark = "DELETE FROM fieldpost_uploads WHERE id = 'sent' AND sent < ?";
const _addMark = '''
    INSERT INTO fieldpost_uploads (id, sent)
    SELECT 'sent', ? WHERE NOT EXISTS (SELECT 1 FROM fieldpost_uploads WHERE id = 'sent')''';
const _sent = '''
    SELECT coalesce((SELECT sent FROM fieldpost_uploads WHERE id = 'sent'),
    (SELECT min(id) - 1 FROM ps_crud), (SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number''';
const _last = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'ps_crud'), 0) AS number";
const _unsent = 'SELECT coalesce((SELECT min(id) FROM ps_crud WHERE id > ?), ?) AS number';
const _renumber = 'UPDATE ps_crud SET id = id + ? WHERE id > ?';
const _removeCounter = "DELETE FROM sqlite_sequence WHERE name = 'ps_crud'";
const _addCounter = "INSERT INTO sqlite_sequence (name, seq) VALUES ('ps_crud', ?)";
const countQuery = 'SELECT count(*) AS number FROM ps_crud';
