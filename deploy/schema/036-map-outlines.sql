-- The outlines of maps.

-- What apps draw below the points of a map: a coast, a city limit.
CREATE TABLE access.outline (
    environment_id  int PRIMARY KEY REFERENCES realm.environment,
    -- GeoJSON (RFC 7946) of `MapOutline`.
    content         text NOT NULL CHECK (octet_length(content) <= 1048576),
    -- SHA-256 of the content, for entity tags.
    digest          bytea NOT NULL
);
