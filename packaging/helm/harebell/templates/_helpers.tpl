{{/* The name of every object: the release's, with the chart's unless it is in there already. */}}
{{- define "harebell.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* Labels that never change, by which the Service finds its pod. */}}
{{- define "harebell.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "harebell.labels" -}}
{{ include "harebell.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The file rabbitmq.conf, with what TLS needs. */}}
{{- define "harebell.configuration" -}}
{{ .Values.configuration | trim }}
{{- if .Values.tls.secret }}
listeners.ssl.default = 5671
management.ssl.port = 15671
ssl_options.certfile = /etc/rabbitmq/tls/tls.crt
ssl_options.keyfile = /etc/rabbitmq/tls/tls.key
{{- if .Values.tls.clientAuthority }}
ssl_options.cacertfile = /etc/rabbitmq/tls/ca.crt
{{- end }}
{{- end }}
{{- end -}}
