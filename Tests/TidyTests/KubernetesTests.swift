import LocalCluster
import Model
import ProjectDocuments
import Testing
import Yams

/// Rules of `deploy/kubernetes` that no schema checks: scaling of workers, network policies, rolling updates.
@Suite struct KubernetesTests {
    @Test(arguments: Services.all.map(\.name)) func serviceScalesByItsLag(name: String) throws {
        let service = try #require(Services.all.first { $0.name == name })
        let documents = try #require(try Deployment.kubernetesDocuments()[name])
        let names = documents.compactMap { $0["metadata"]?["name"]?.string }
        #expect(Set(names).isSubset(of: [name, "\(name)-http"]))
        let scaled = documents.first { $0.isKind("ScaledObject") }
        if let partitions = service.topics.map(\.partitions).max() {
            #expect(scaled?["spec"]?["maxReplicaCount"]?.int == partitions, "worker.count is 1 unless it is set")
            let trigger = scaled?["spec"]?["triggers"]?[0]?["metadata"]
            #expect(trigger?["threshold"]?.string == "250", "the backlog of one worker")
            let query = trigger?["query"]?.string
            #expect(query == "sum(max without (instance, pod) (fieldpost_workable_backlog{group=\"\(name)\"}))")
        } else {
            #expect(scaled == nil, "there is no backlog to scale it by")
        }
        let hasEndpoint = service.endpoint != nil
        #expect(documents.contains { $0.isKind("HorizontalPodAutoscaler") } == hasEndpoint)
        #expect(names.contains("\(name)-http") == hasEndpoint)
        let deployment = try #require(documents.first { $0.isKind("Deployment") })
        let isScaled = hasEndpoint || scaled != nil
        #expect((deployment["spec"]?["replicas"] == nil) == isScaled, "the autoscaler sets the number of replicas")
    }

    @Test(arguments: Services.all.map(\.name)) func serviceHasItsNetworkAccess(name: String) throws {
        let service = try #require(Services.all.first { $0.name == name })
        let documents = try #require(try Deployment.kubernetesDocuments()[name])
        let template = documents.first { $0.isKind("Deployment") }?["spec"]?["template"]
        let labels = try #require(template?["metadata"]?["labels"])
        #expect((labels["fieldpost/kafka"]?.string == "true") == service.needs.contains(.kafka))
        // The delivery service calls only people's receivers.
        let isOutside = !service.needs.isDisjoint(with: [.backEnds, .identityProviders]) || name == "notice-deliverer"
        #expect((labels["fieldpost/outside"]?.string == "true") == isOutside)
        #expect((labels["fieldpost/devices"]?.string == "true") == (service.endpoint != nil))
        let admin = documents.first { $0.isKind("Service") && $0["metadata"]?["name"]?.string == name }
        #expect(admin?["spec"]?["ports"]?[0]?["port"]?.int == service.localAdminPort)
        #expect(documents.contains { $0.isKind("PodDisruptionBudget") })
    }

    /// If a base renamed the image, an overlay's `images` would have no effect.
    @Test(arguments: ["setup", "services"]) func overlaySetsTheImage(folder: String) throws {
        let base = try ProjectDocument("deploy/kubernetes/\(folder)/kustomization.yaml").root
        #expect(base["images"] == nil)
        let overlay = try ProjectDocument("deploy/kubernetes/example/\(folder)/kustomization.yaml").root
        #expect(overlay["resources"]?.texts == ["../../\(folder)", "values.yaml"])
        #expect(overlay["images"]?[0]?["name"]?.string == "fieldpost")
    }

    /// An installation with the Prometheus Operator has the same alerts as one without it.
    @Test func prometheusRuleHasTheAlertRules() throws {
        let rules = try ProjectDocument("deploy/prometheus/fieldpost.rules.yaml").root["groups"]
        let copy = try ProjectDocument("deploy/kubernetes/prometheus-operator/rules.yaml").root["spec"]?["groups"]
        #expect(rules != nil && copy == rules, "copy the groups of deploy/prometheus/fieldpost.rules.yaml")
    }

    /// All pods run without privileges and exit after their work in flight is finished.
    @Test func podsDifferOnlyInTheirPrograms() throws {
        let all = try Deployment.kubernetesDocuments()
        let deployments = all.values.joined().filter { $0.isKind("Deployment") }.compactMap { $0["spec"] }
        let pods = deployments.compactMap { $0["template"]?["spec"] }
        #expect(pods.count == Services.all.count)
        #expect(Set(pods.map { $0["securityContext"] }).count == 1)
        #expect(Set(pods.map { $0["containers"]?[0]?["securityContext"] }).count == 1)
        #expect(Set(deployments.map { $0["strategy"] }).count == 1)
        #expect(deployments.allSatisfy { $0["strategy"]?["rollingUpdate"]?["maxUnavailable"]?.int == 0 })
        for pod in pods {
            let wait = pod["containers"]?[0]?["lifecycle"]?["preStop"]?["sleep"]?["seconds"]?.int ?? 0
            let shutdownMax = 20
            #expect(pod["terminationGracePeriodSeconds"]?.int ?? 0 >= wait + shutdownMax + 5)
            // Kubernetes would set variables by services' names, and a program rejects unknown variables.
            #expect(pod["enableServiceLinks"]?.bool == false)
            #expect(pod["automountServiceAccountToken"]?.bool == false)
        }
    }
}
