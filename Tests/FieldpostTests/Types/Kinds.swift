// Generated: fieldpost schema generate swift
// swift-format-ignore-file
import DeviceClient
import Essentials
import Foundation
import Model

/// The types of own kinds.
enum Kinds {
    /// Only integrations write it.
    struct Array: OwnObject {
        static let kindName = "Array"
        let fields: [String: FieldJSON]

        var string: String_? { self["string"] }
        var text: String? { self["text"] }

        struct String_: NestedObject {
            var fields: [String: FieldJSON]

            var a: String? { get { self["a"] } set { self["a"] = newValue } }

            init(fields: [String: FieldJSON]) { self.fields = fields }

            init(a: String? = nil) {
                fields = [:]
                self.fields["a"] = a?.fieldJSON
            }
        }
    }

    /// An object of the kind Error.
    struct Error: OwnObject {
        static let kindName = "Error"
        let fields: [String: FieldJSON]

        var error: String? { self["error"] }
    }

    /// An inspection of a site.
    /// It ends a comment: * / and begins one: / *
    struct Inspection: DeletableObject {
        static let kindName = "Inspection"
        let fields: [String: FieldJSON]

        /// Name of the site.
        var site: String? { self["site"] }
        var state: State? { self["state"] }
        var day: Day? { self["day"] }
        var seenAt: Timestamp? { self["seenAt"] }
        var photos: [UUID]? { self["photos"] }
        /// The position of the site.
        var place: Place? { self["place"] }
        var tags: [Tags?]? { self["tags"] }
        var counts: [String: Int64]? { self["counts"] }
        var anything: FieldJSON? { self["anything"] }
        var score: Double? { self["score"] }
        var isUrgent: Bool? { self["isUrgent"] }
        var steps: [Steps]? { self["steps"] }
        var receipt: UUID? { self["receipt"] }
        var approval: String? { self["approval"] }
        var level: String? { self["level"] }

        static let blobPaths: [[FieldStep]] = [[.member("photos"), .each], [.member("receipt")]]

        struct State: FieldText {
            let rawValue: String
            static let draft = Self(rawValue: "draft")
            static let sent = Self(rawValue: "sent")
            static let inProgress = Self(rawValue: "in progress")
            static let none_ = Self(rawValue: "none")
            static let value1st = Self(rawValue: "1st")
            static let value = Self(rawValue: "")
            static let allCases: [Self] = [.draft, .sent, .inProgress, .none_, .value1st, .value]
        }

        struct Place: NestedObject {
            var fields: [String: FieldJSON]

            var latitude: Double? { get { self["latitude"] } set { self["latitude"] = newValue } }
            var floor: Int64? { get { self["floor"] } set { self["floor"] = newValue.fieldJSON } }
            var oddName: Bool? { get { self["odd \"name\"$"] } set { self["odd \"name\"$"] = newValue } }
            var point: Point? { get { self["point"] } set { self["point"] = newValue } }
            var note: FieldJSON? { get { self["note"] } set { self["note"] = newValue } }

            init(fields: [String: FieldJSON]) { self.fields = fields }

            init(
                latitude: Double,
                floor: Int64?,
                note: FieldJSON,
                oddName: Bool? = nil,
                point: Point? = nil
            ) {
                fields = [:]
                self.fields["latitude"] = latitude.fieldJSON
                self.fields["floor"] = floor.fieldJSON
                self.fields["note"] = note.fieldJSON
                self.fields["odd \"name\"$"] = oddName?.fieldJSON
                self.fields["point"] = point?.fieldJSON
            }

            struct Point: NestedObject {
                var fields: [String: FieldJSON]

                var x: Int64? { get { self["x"] } set { self["x"] = newValue } }

                init(fields: [String: FieldJSON]) { self.fields = fields }

                init(x: Int64) {
                    fields = [:]
                    self.fields["x"] = x.fieldJSON
                }
            }
        }

        struct Tags: FieldText {
            let rawValue: String
            static let red = Self(rawValue: "red")
            static let green = Self(rawValue: "green")
            static let allCases: [Self] = [.red, .green]
        }

        struct Steps: NestedObject {
            var fields: [String: FieldJSON]

            var title: String? { get { self["title"] } set { self["title"] = newValue } }

            init(fields: [String: FieldJSON]) { self.fields = fields }

            init(title: String? = nil) {
                fields = [:]
                self.fields["title"] = title?.fieldJSON
            }
        }

        /// The fields of a new object that people may write.
        struct New: NewInUserRealm, NewInTeamRealm {
            static let kindName = "Inspection"
            private(set) var fields: [String: FieldJSON] = [:]

            init(
                site: String,
                state: State,
                level: String?,
                day: Day? = nil,
                seenAt: Timestamp? = nil,
                photos: [UUID]? = nil,
                place: Place? = nil,
                tags: [Tags?]? = nil,
                counts: [String: Int64]? = nil,
                anything: FieldJSON? = nil,
                score: Double? = nil,
                isUrgent: Bool? = nil,
                steps: [Steps]? = nil
            ) {
                fields["site"] = site.fieldJSON
                fields["state"] = state.fieldJSON
                fields["level"] = level.fieldJSON
                fields["day"] = day?.fieldJSON
                fields["seenAt"] = seenAt?.fieldJSON
                fields["photos"] = photos?.fieldJSON
                fields["place"] = place?.fieldJSON
                fields["tags"] = tags?.fieldJSON
                fields["counts"] = counts?.fieldJSON
                fields["anything"] = anything?.fieldJSON
                fields["score"] = score?.fieldJSON
                fields["isUrgent"] = isUrgent?.fieldJSON
                fields["steps"] = steps?.fieldJSON
            }
        }

        /// A change of the fields that people may change; those that are `nil` keep their values.
        struct Change: ObjectChange {
            static let kindName = "Inspection"
            private(set) var fields: [String: FieldJSON] = [:]

            init(
                state: State? = nil,
                day: FieldUpdate<Day>? = nil,
                photos: FieldUpdate<[UUID]>? = nil,
                place: FieldUpdate<Place>? = nil,
                approval: FieldUpdate<String>? = nil,
                level: FieldUpdate<String>? = nil
            ) {
                fields["state"] = state?.fieldJSON
                fields["day"] = day?.fieldJSON
                fields["photos"] = photos?.fieldJSON
                fields["place"] = place?.fieldJSON
                fields["approval"] = approval?.fieldJSON
                fields["level"] = level?.fieldJSON
            }
        }
    }

    /// An object of the kind Kind.
    struct Kind: OwnObject {
        static let kindName = "Kind"
        let fields: [String: FieldJSON]

        var `in`: Bool? { self["in"] }
        var `var`: Int64? { self["var"] }
        var when: Double? { self["when"] }

        /// The fields of a new object that people may write.
        struct New: NewInTeamRealm {
            static let kindName = "Kind"
            private(set) var fields: [String: FieldJSON] = [:]

            init(`in`: Bool, `var`: Int64? = nil, when: Double? = nil) {
                fields["in"] = `in`.fieldJSON
                fields["var"] = `var`?.fieldJSON
                fields["when"] = when?.fieldJSON
            }
        }

        /// A change of the fields that people may change; those that are `nil` keep their values.
        struct Change: ObjectChange {
            static let kindName = "Kind"
            private(set) var fields: [String: FieldJSON] = [:]

            init(
                `in`: Bool? = nil,
                `var`: FieldUpdate<Int64>? = nil,
                when: FieldUpdate<Double>? = nil
            ) {
                fields["in"] = `in`?.fieldJSON
                fields["var"] = `var`?.fieldJSON
                fields["when"] = when?.fieldJSON
            }
        }
    }

    /// An object of the kind NewKind.
    struct NewKind: OwnObject {
        static let kindName = "NewKind"
        let fields: [String: FieldJSON]

        var a: String? { self["a"] }

        /// A change of the fields that people may change; those that are `nil` keep their values.
        struct Change: ObjectChange {
            static let kindName = "NewKind"
            private(set) var fields: [String: FieldJSON] = [:]

            init(a: FieldUpdate<String>? = nil) {
                fields["a"] = a?.fieldJSON
            }
        }
    }

    /// An object of the kind String.
    struct String_: DeletableObject {
        static let kindName = "String"
        let fields: [String: FieldJSON]

        var `class`: String? { self["class"] }
        var self_: String? { self["self"] }
        var init_: String? { self["init"] }
        var fields_: String? { self["fields"] }
        var new: New_? { self["new"] }
        var day: Day_? { self["day"] }
        var `func`: Func? { self["func"] }

        struct New_: NestedObject {
            var fields: [String: FieldJSON]

            var string: String? { get { self["String"] } set { self["String"] = newValue } }
            var string_: Int64? { get { self["string"] } set { self["string"] = newValue } }

            init(fields: [String: FieldJSON]) { self.fields = fields }

            init(string: String? = nil, string_: Int64? = nil) {
                fields = [:]
                self.fields["String"] = string?.fieldJSON
                self.fields["string"] = string_?.fieldJSON
            }
        }

        struct Day_: NestedObject {
            var fields: [String: FieldJSON]

            var day: Day? { get { self["day"] } set { self["day"] = newValue } }

            init(fields: [String: FieldJSON]) { self.fields = fields }

            init(day: Day? = nil) {
                fields = [:]
                self.fields["day"] = day?.fieldJSON
            }
        }

        struct Func: FieldText {
            let rawValue: String
            static let `class` = Self(rawValue: "class")
            static let self_ = Self(rawValue: "self")
            static let allCases_ = Self(rawValue: "allCases")
            static let allCases: [Self] = [.`class`, .self_, .allCases_]
        }

        /// The fields of a new object that people may write.
        struct New: NewInManagerRealm {
            static let kindName = "String"
            private(set) var fields: [String: FieldJSON] = [:]

            init(
                `class`: String,
                self_: String? = nil,
                init_: String? = nil,
                fields_: String? = nil,
                new: New_? = nil,
                day: Day_? = nil,
                `func`: Func? = nil
            ) {
                fields["class"] = `class`.fieldJSON
                fields["self"] = self_?.fieldJSON
                fields["init"] = init_?.fieldJSON
                fields["fields"] = fields_?.fieldJSON
                fields["new"] = new?.fieldJSON
                fields["day"] = day?.fieldJSON
                fields["func"] = `func`?.fieldJSON
            }
        }

        /// A change of the fields that people may change; those that are `nil` keep their values.
        struct Change: ObjectChange {
            static let kindName = "String"
            private(set) var fields: [String: FieldJSON] = [:]

            init(
                `class`: String? = nil,
                self_: FieldUpdate<String>? = nil,
                init_: FieldUpdate<String>? = nil,
                fields_: FieldUpdate<String>? = nil,
                new: FieldUpdate<New_>? = nil,
                day: FieldUpdate<Day_>? = nil,
                `func`: FieldUpdate<Func>? = nil
            ) {
                fields["class"] = `class`?.fieldJSON
                fields["self"] = self_?.fieldJSON
                fields["init"] = init_?.fieldJSON
                fields["fields"] = fields_?.fieldJSON
                fields["new"] = new?.fieldJSON
                fields["day"] = day?.fieldJSON
                fields["func"] = `func`?.fieldJSON
            }
        }
    }
}
