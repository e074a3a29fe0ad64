/** Texts in Danish. Each view has a section; a plural has its forms by `Intl.PluralRules`. */
export default {
    // app
    "app.name": "Fieldpost",
    "app.skip": "Skip to content",
    "app.navigation": "Views",
    "app.unread": "unread",
    "app.close": "Close",
    "app.cancel": "Cancel",
    "app.ok": "OK",
    "app.save": "Save",
    "app.delete": "Delete",
    "app.edit": "Edit",
    "app.undo": "Undo",
    "app.back": "Back",
    "app.more": "More",
    "app.details": "Details",
    "app.reload": "Reload",
    "app.retry": "Try again",
    "app.pending": "Not sent yet",
    "app.rejected": "A change was rejected: {problem}",
    "app.loginRequired": "Your login has expired. Your changes stay on this device.",
    "app.newVersion": "A new version of the app is ready.",
    "app.viewFailed": "This view could not be opened",
    "app.viewFailedText": "Reload the app. If this happens again, contact your administrator.",
    "app.viewOffline": "This view was not stored on the device yet. Open it once while you are online.",
    "app.startFailed": "The app could not start",
    "app.startFailedText": "Its files or its storage could not be read. Check the connection and reload.",

    // status
    "status.live": "Up to date",
    "status.connecting": "Connecting",
    "status.signing-in": "Signing in",
    "status.signed-out": "Signed out",
    "status.offline": "Offline",
    "status.paused": "Working offline",
    "status.login-required": "Sign in again",
    "status.failed": "Sync failed",
    "status.queued": { one: "{n} to send", other: "{n} to send" },
    "status.rejected": { one: "{n} rejected", other: "{n} rejected" },

    // titles of the tabs and views
    "time.tab": "Time",
    "time.title": "Time",
    "tasks.tab": "Tasks",
    "tasks.title": "Tasks",
    "team.tab": "Team",
    "team.title": "Team",
    "shared.tab": "Shared",
    "shared.title": "Shared",
    "defects.tab": "Defects",
    "defects.title": "Defects",
    "notices.tab": "Notices",
    "notices.title": "Notices",
    "sync.title": "Sync",
    "signin.title": "Sign in",
    "signin.again": "Sign in",

    // problem: texts by code
    "problem.unknown": "Something went wrong. Try again.",
    "problem.offline": "No connection. Try again when you are online.",
    "problem.storage-full": "This device has no space left for the app.",
    "problem.login-required": "Your login has expired. Sign in again.",
    "problem.version-conflict": "Somebody changed it in the meantime. Check the current version.",
    "problem.queued-mutations": "Changes on this device were not sent yet.",

    // signin

    // time

    // tasks

    // team

    // shared

    // defects

    // notices

    // sync
};
