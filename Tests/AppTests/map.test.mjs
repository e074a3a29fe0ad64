import assert from "node:assert/strict";
import { test } from "node:test";
import * as map from "../../Services/Onboarding/App/core/map.js";

const size = { width: 800, height: 600 };
const copenhagen = { latitude: 55.6761, longitude: 12.5683 };
const near = (a, b, tolerance = 1e-6) => assert.ok(Math.abs(a - b) <= tolerance, `${a} is not ${b}`);

test("projection and its inverse agree", () => {
    for (const point of [copenhagen, { latitude: -33.9, longitude: 151.2 }, { latitude: 0, longitude: 0 }]) {
        const back = map.unproject(map.project(point));
        near(back.latitude, point.latitude);
        near(back.longitude, point.longitude);
    }
    near(map.project({ latitude: 90, longitude: 0 }).y, 0);
});

test("a window's position and its world position agree", () => {
    const view = { x: 0.53, y: 0.31, scale: 100_000 };
    const point = map.toScreen(view, size, map.toWorld(view, size, { x: 120, y: 480 }));
    near(point.x, 120);
    near(point.y, 480);
});

test("zooming keeps the world position under the pointer", () => {
    const view = { ...map.project(copenhagen), scale: 50_000 };
    const pointer = { x: 100, y: 500 };
    const before = map.toWorld(view, size, pointer);
    const after = map.toWorld(map.zoomAt(view, size, pointer, 3), size, pointer);
    near(after.x, before.x, 1e-9);
    near(after.y, before.y, 1e-9);
});

test("the scale is limited", () => {
    const view = { x: 0.5, y: 0.5, scale: 1000 };
    assert.equal(map.zoomAt(view, size, { x: 0, y: 0 }, 1e12).scale, map.scaleMax);
    assert.equal(map.zoomAt(view, size, { x: 0, y: 0 }, 1e-12).scale, map.scaleMin);
});

test("two fingers keep their world positions", () => {
    const view = { x: 0.5, y: 0.4, scale: 20_000 };
    const before = [{ x: 300, y: 300 }, { x: 500, y: 300 }];
    const after = [{ x: 200, y: 320 }, { x: 600, y: 320 }];
    const moved = map.pinch(view, size, before, after);
    near(moved.scale, 40_000);
    for (const index of [0, 1]) {
        const [a, b] = [map.toWorld(view, size, before[index]), map.toWorld(moved, size, after[index])];
        near(a.x, b.x, 1e-9);
        near(a.y, b.y, 1e-9);
    }
});

test("fitting shows every point with padding", () => {
    const points = [copenhagen, { latitude: 56.15, longitude: 10.2 }, { latitude: 55.4, longitude: 10.38 }];
    const view = map.fit(points, size);
    for (const point of points) {
        const { x, y } = map.toScreen(view, size, map.project(point));
        assert.ok(x >= 47 && x <= size.width - 47 && y >= 47 && y <= size.height - 47, `${x} ${y}`);
    }
});

test("fitting one point limits the enlargement, and no point shows the world", () => {
    const bar = map.scaleBar(map.fit([copenhagen], size));
    assert.ok(bar.metres >= 100 && bar.metres <= 1_000, `${bar.metres}`);
    assert.equal(map.fit([], size).scale, 800);
});

test("points on both sides of the antimeridian are near each other", () => {
    const points = [{ latitude: -17, longitude: 179 }, { latitude: -17, longitude: -179 }];
    const view = map.fit(points, size);
    assert.ok(view.scale > 50_000);
    const [a, b] = points.map((point) => map.toScreen(view, size, map.project(point)).x);
    assert.ok(a >= 0 && b <= size.width && a < b, `${a} ${b}`);
});

test("each point is in exactly one cluster", () => {
    const points = Array.from({ length: 2_000 }, (_, index) => ({ id: index,
        ...map.project({ latitude: 55 + (index * 7919 % 1000) / 1000,
            longitude: 10 + (index * 104729 % 1000) / 500 }) }));
    const groups = map.cluster(points, 30_000);
    const ids = groups.flatMap((group) => group.points.map(({ id }) => id));
    assert.equal(ids.length, 2_000);
    assert.equal(new Set(ids).size, 2_000);
    assert.ok(groups.length < 300, `${groups.length}`);
});

test("distant points form clusters of their own, equal ones the same", () => {
    const point = map.project(copenhagen);
    const groups = map.cluster([point, { ...point }, { x: point.x + 0.1, y: point.y }], 10_000);
    assert.deepEqual(groups.map((group) => group.points.length).sort(), [1, 2]);
});

test("clusters contain each of 10,000 points once", () => {
    const points = Array.from({ length: 10_000 }, (_, index) => map.project({
        latitude: 54 + (index * 7919 % 3001) / 1000, longitude: 8 + (index * 104729 % 5003) / 1000 }));
    const clusters = map.cluster(points, 40_000);
    assert.ok(clusters.length < points.length);
    assert.equal(clusters.reduce((sum, cluster) => sum + cluster.points.length, 0), points.length);
});

test("graticule steps are parts of a degree, a minute or a second", () => {
    assert.equal(map.niceDegrees(100), 60);
    assert.equal(map.niceDegrees(7), 10);
    assert.equal(map.niceDegrees(0.9), 1);
    near(map.niceDegrees(0.12), 10 / 60);
    near(map.niceDegrees(0.0001), 1 / 3600);
});

test("the graticule has labelled lines in the window, and few", () => {
    for (const scale of [800, 30_000, 1e6, 2e8]) {
        const lines = map.graticule({ ...map.project(copenhagen), scale }, size);
        for (const axis of ["latitude", "longitude"]) {
            const some = lines.filter((line) => line.axis === axis);
            assert.ok(some.length >= 1 && some.length < 20, `${axis} ${scale} ${some.length}`);
        }
        for (const line of lines) assert.ok(line.at >= -1 && line.at <= 801);
    }
});

test("labels have degrees, minutes and seconds as the step needs them", () => {
    assert.equal(map.degreesText(55, "latitude", 1), "55°N");
    assert.equal(map.degreesText(-12.5, "longitude", 0.5), "12°30′W");
    assert.equal(map.degreesText(55.675, "latitude", 5 / 3600), "55°40′30″N");
    assert.equal(map.degreesText(0, "latitude", 1), "0°");
    assert.equal(map.degreesText(180, "longitude", 10), "180°");
});

test("the scale bar has a round length that fits", () => {
    for (const scale of [256, 5_000, 123_456, 9e7]) {
        const { metres, pixels } = map.scaleBar({ ...map.project(copenhagen), scale });
        assert.ok(pixels <= 120.0001 && pixels >= 45, `${pixels}`);
        assert.ok([1, 2, 5].includes(Math.round(metres / 10 ** Math.floor(Math.log10(metres) + 1e-9))), `${metres}`);
    }
});

test("an outline accepts each line geometry and omits invalid positions", () => {
    const ring = [[10, 55], [11, 55], [11, 56], [10, 55]];
    const paths = map.outlinePaths({ type: "FeatureCollection", features: [
        { type: "Feature", geometry: { type: "MultiPolygon", coordinates: [[ring], [ring]] } },
        { type: "Feature", geometry: { type: "Polygon", coordinates: [ring, ring] } },
        { type: "Feature", geometry: { type: "LineString", coordinates: [[1, 2], ["x", 3], null, [3, 4]] } },
        { type: "Feature", geometry: { type: "Point", coordinates: [1, 2] } }, null, { type: "Feature" },
    ] });
    assert.equal(paths.length, 5);
    assert.equal(paths[4].points.length, 4);
    assert.equal(paths[4].isClosed, false);
    assert.deepEqual(map.outlinePaths(null), []);
    assert.deepEqual(map.outlinePaths({ type: "Polygon", coordinates: "no" }), []);
});
