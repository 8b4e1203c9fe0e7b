{{- define "verbatim.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "verbatim.labels" -}}
app.kubernetes.io/name: verbatim
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "verbatim.selector" -}}
app.kubernetes.io/name: verbatim
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "verbatim.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
