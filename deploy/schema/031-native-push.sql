-- Deliveries: native push messages through Apple Push Notification service (APNs) and Firebase Cloud Messaging (FCM).

-- The sender's credentials of an environment. Each secret is sealed with the configured key (AES-GCM).
ALTER TABLE backend.delivery
    -- The bundle id of the app; null: there are no messages through APNs.
    ADD apns_topic      text,
    ADD apns_team_id    text,
    ADD apns_key_id     text,
    -- The private key of an authentication token, as the .p8 file has it.
    ADD apns_key        bytea,
    -- https://api.push.apple.com, or that of development builds.
    ADD apns_server     text,
    -- The project's id; null: there are no messages through FCM.
    ADD fcm_project     text,
    -- The service account's key, as its JSON file has it.
    ADD fcm_account     bytea,
    ADD fcm_server      text,
    ADD CHECK (apns_topic IS NULL OR (
        apns_team_id IS NOT NULL AND apns_key_id IS NOT NULL AND apns_key IS NOT NULL AND apns_server IS NOT NULL)),
    ADD CHECK (fcm_project IS NULL OR (fcm_account IS NOT NULL AND fcm_server IS NOT NULL));

ALTER TABLE delivery.shipment DROP CONSTRAINT shipment_way_check;
-- Existing rows have the former channels: they need no scan.
ALTER TABLE delivery.shipment ADD CONSTRAINT shipment_way_check
    CHECK (way IN ('webhook', 'email', 'push', 'apns', 'fcm')) NOT VALID;

-- The devices of people's choices. A token can be in the choices of several people who used the same device.
CREATE TABLE delivery.device (
    environment_id  int NOT NULL,
    realm_id        int NOT NULL,
    -- SHA-256 of the service's name, a space and the token.
    token           bytea NOT NULL,
    -- SHA-256 of the device's name, as in onboarding.refresh_token.
    device          bytea NOT NULL,
    choice_id       uuid NOT NULL,
    PRIMARY KEY (environment_id, realm_id, token)
);
CREATE INDEX ON delivery.device (environment_id, token);

-- Every writer of choices, of whatever release, maintains it in the same transaction: as blob.follow, 019.
CREATE FUNCTION delivery.follow() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM delivery.device
        WHERE environment_id = OLD.environment_id AND realm_id = OLD.realm_id AND choice_id = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' AND NOT NEW.deleted AND json_typeof(NEW.fields::json->'devices') = 'array' THEN
        INSERT INTO delivery.device (environment_id, realm_id, token, device, choice_id)
        SELECT NEW.environment_id, NEW.realm_id,
            sha256(convert_to((d->>'service') || ' ' || (d->>'token'), 'UTF8')), decode(d->>'device', 'hex'), NEW.id
        FROM json_array_elements(NEW.fields::json->'devices') AS u(d)
        WHERE d->>'service' IS NOT NULL AND d->>'token' IS NOT NULL AND d->>'device' ~ '^[0-9a-f]{64}$'
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;

-- As in 016.
SET LOCAL lock_timeout = '60s';
LOCK TABLE store.object IN SHARE UPDATE EXCLUSIVE MODE;
SET LOCAL lock_timeout = '200ms';

-- DeliveryChoice. All other kinds pay for a comparison of their number. No choice has devices yet.
CREATE TRIGGER choice_written AFTER INSERT OR UPDATE ON store.object
    FOR EACH ROW WHEN (NEW.kind = 25) EXECUTE FUNCTION delivery.follow();
CREATE TRIGGER choice_gone AFTER DELETE ON store.object
    FOR EACH ROW WHEN (OLD.kind = 25) EXECUTE FUNCTION delivery.follow();

-- Devices whose credential renews tokens: of the person of the realm, whose account is still the one that logged in.
-- `login` grows with each login.
CREATE VIEW delivery.bound_device AS
SELECT d.environment_id, d.realm_id, d.token, t.id AS login
FROM delivery.device d
JOIN realm.realm r ON r.environment_id = d.environment_id AND r.id = d.realm_id
JOIN onboarding.refresh_token t ON t.environment_id = d.environment_id AND t.device = d.device
JOIN access.person a ON a.environment_id = t.environment_id AND a.id = t.person_id
JOIN access.provider p ON p.environment_id = t.environment_id
WHERE t.newest IS NOT NULL AND t.revoked_at IS NULL
    AND a.issuer = t.issuer AND a.subject = t.subject AND p.issuer = t.issuer AND r.path = '/users/' || a.email;

-- The devices that get messages. A token belongs to its newest login: the person before gets no message on a device that
-- another person uses now. A role that reads the view needs no permission on the tables of logins.
CREATE VIEW delivery.active_device AS
SELECT b.environment_id, b.realm_id, b.token FROM delivery.bound_device b
WHERE NOT EXISTS (
    SELECT FROM delivery.bound_device n
    WHERE n.environment_id = b.environment_id AND n.token = b.token AND n.login > b.login);
