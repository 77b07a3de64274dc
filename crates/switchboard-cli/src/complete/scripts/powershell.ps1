# Completion of switchboard in PowerShell. Load it with: switchboard completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName 'switchboard' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object {
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.ToString() }
        })
    switchboard __complete powershell @words "=$wordToComplete" 2>$null | ForEach-Object {
        $quoted, $shown, $about = $_ -split "`t", 3
        if (-not $about) { $about = $shown }
        [System.Management.Automation.CompletionResult]::new($quoted, $shown, 'ParameterValue', $about)
    }
}
