import 'dart:async';
import 'dart:convert';
import 'dart:math';
import 'dart:typed_data';

import 'package:powersync/powersync.dart';
import 'package:web_socket_channel/web_socket_channel.dart';

import 'fieldpost_connector.dart';

/// An error of Fieldpost with a stable code, such as `offline` or `login-required`.
class ConnectorException implements Exception {
  ConnectorException(this.code, this.message, {this.status = 0, this.problem});

  final String code, message;

  /// Status of the response; 0 without one.
  final int status;

  /// Members of the server's problem (RFC 9457).
  final Map<String, Object?>? problem;

  @override
  String toString() => '$code: $message';
}

/// The login of one person. Store it encrypted: `credential` is a password.
class FieldpostLogin {
  FieldpostLogin(this.onboarding, this.gateway, this.accessToken, this.expiresAt, this.credential);

  FieldpostLogin.fromJson(Map<String, Object?> json)
      : this(json['onboarding'] as String, json['gateway'] as String, json['accessToken'] as String,
            DateTime.parse(json['expiresAt'] as String), json['credential'] as String?);

  final String onboarding, gateway, accessToken;
  final DateTime expiresAt;

  /// Renews the token; null if the person has to log in when it ends.
  final String? credential;

  Map<String, Object?> toJson() => {
        'onboarding': onboarding,
        'gateway': gateway,
        'accessToken': accessToken,
        'expiresAt': expiresAt.toUtc().toIso8601String(),
        'credential': credential,
      };

  FieldpostLogin at({String? onboarding, String? gateway}) => FieldpostLogin(
      onboarding ?? this.onboarding, gateway ?? this.gateway, accessToken, expiresAt, credential);

  /// Returns the login with the token of an event or of a renewal.
  FieldpostLogin withToken(Map<String, Object?> token) => FieldpostLogin(onboarding, gateway,
      token['access_token'] as String, DateTime.parse(token['expires_at'] as String), token['credential'] as String?);

  FieldpostLogin withoutCredential() => FieldpostLogin(onboarding, gateway, accessToken, expiresAt, null);
}

/// Stores the login. The future of `save` completes when it is stored.
abstract class LoginStore {
  Future<FieldpostLogin?> load();
  Future<void> save(FieldpostLogin? login);
}

const problemPrefix = 'urn:fieldpost:problem:';

String withoutSlash(String url) => url.endsWith('/') ? url.substring(0, url.length - 1) : url;
Uint8List json(Object? value) => utf8.encode(jsonEncode(value));
Map<String, Object?> object(List<int> data) => jsonDecode(utf8.decode(data)) as Map<String, Object?>;

/// The login through onboarding.
extension FieldpostSession on FieldpostConnector {
  /// Logs a person in. Completes when the token is stored and the person's data is ready.
  ///
  /// `onProblem` gets a URL if another attempt in the same session may succeed.
  Future<void> login(String email,
      {required void Function(String url) openURL, void Function(ConnectorException, String?)? onProblem}) async {
    var login = FieldpostLogin(onboarding, gateway, '', DateTime.utc(1970), null);
    final session = object(await send('POST', onboarding, '/register_device', body: json({'email': email}),
        onMoved: (moved) async { login = login.at(onboarding: moved); }));
    final url = Uri.parse('${login.onboarding.replaceFirst('http', 'ws')}/sessions/${session['session_id']}');
    final deadline = DateTime.now().add(Duration(seconds: session['expires_in'] as int));
    final missing = {'token', 'data ready'};
    final handled = <int>{};
    var isOffered = false, failures = 0;
    while (missing.isNotEmpty) {
      final left = deadline.difference(DateTime.now());
      if (left.isNegative) throw ConnectorException('session-expired', 'The login took too long.');
      if (failures > 0) await Future<void>.delayed(Duration(milliseconds: min(500 << min(failures, 5), 10000)));
      failures += 1;
      final socket = WebSocketChannel.connect(url);
      final expiry = Timer(left, () => socket.sink.close());
      try {
        await socket.ready;
        if (!isOffered) openURL(session['login_url'] as String);
        isOffered = true;
        await for (final text in socket.stream) {
          final event = jsonDecode(text as String) as Map<String, Object?>;
          final payload = event['payload'] as Map<String, Object?>;
          final id = event['id'] as int, name = event['event'] as String;
          if (handled.add(id) && name == 'token') {
            login = login.withToken(payload);
            await store.save(login);
          } else if (name == 'error') {
            final error = ConnectorException('${payload['code']}', '${payload['message']}');
            onProblem?.call(error, payload['login_url'] as String?);
            if (payload['login_url'] == null) throw error;
          }
          missing.remove(name);
          failures = 0;
          socket.sink.add(jsonEncode({'acknowledge': id}));
          if (missing.isEmpty) break;
        }
      } on ConnectorException {
        rethrow;
      } on Exception {
        // The socket is opened again. Unacknowledged events are delivered again.
      } finally {
        expiry.cancel();
        unawaited(socket.sink.close());
      }
      final code = socket.closeCode ?? 0;
      if (missing.isNotEmpty && code >= 4000) throw ConnectorException('session-closed', 'Close code $code.');
    }
  }

  /// Ends the login and clears the database. Throws `queued-entries` unless `discard` is true.
  Future<void> signOut(PowerSyncDatabase database, {bool discard = false}) async {
    final count = (await database.get(countQuery))['number'] as int;
    if (count > 0 && !discard) throw ConnectorException('queued-entries', '$count changes were not uploaded yet.');
    await database.disconnectAndClear();
    await renewal?.then((_) {}, onError: (_) {});
    final login = await store.load();
    await store.save(null);
    alignedClient = null;
    if (login?.credential == null) return;
    try {
      await send('POST', login!.onboarding, '/v1/logout', body: json({'credential': login.credential}));
    } on ConnectorException {
      // The access token remains valid until it expires.
    }
  }
}
