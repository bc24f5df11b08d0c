// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ras

import "github.com/otelcol-gpu/otelcol-gpu/internal/health"

// What to do about several codes.
const (
	bootAgain   = "Drain the node and switch it off and on; if the code comes back, contact support."
	resetBoard  = "Drain the board and reset it; if the code comes back, run the vendor's diagnostics."
	resetLinked = "Drain all boards that the link connects and reset them together; if the code comes back, check cables and seats."
	restartWork = "Restart the application that used the data; reset the board when it is next free."
	nothing     = "Nothing at once; if it comes back often, run the vendor's diagnostics when the board is free."
	readRecord  = "Read the record (amd-smi ras --cper) and the kernel log; the severity states how bad it is."
)

// catalogue is every code of AMD's list, ascending.
var catalogue = []Entry{
	{1, Firmware, Fatal, "The firmware of the board was not loaded at its start.", bootAgain, health.RebootNode},
	{2, Memory, Fatal, "The built-in test of the memory failed at the start of the board.", bootAgain, health.RebootNode},
	{3, Memory, Fatal, "The test of the memory failed at the start of the board.", bootAgain, health.RebootNode},
	{4, Memory, Fatal, "The memory could not be trained at the start of the board.", bootAgain, health.RebootNode},
	{5, Firmware, Fatal, "The start of the board ended with an error that its firmware does not handle.", bootAgain, health.RebootNode},
	{6, Firmware, Fatal, "The start of the board ended with an error that its firmware does not name.", bootAgain, health.RebootNode},
	{7, Package, Fatal, "A control link between the dies could not be trained at the start of the board.", bootAgain, health.RebootNode},
	{8, Package, Fatal, "A data link between the dies could not be trained at the start of the board.", bootAgain, health.RebootNode},
	{9, WAFL, Fatal, "A WAFL link to another board could not be trained at the start of the board.", bootAgain, health.RebootNode},
	{10, XGMI, Fatal, "An XGMI link to another board could not be trained at the start of the board.", bootAgain, health.RebootNode},
	{11, Firmware, Fatal, "The controller that starts the board stopped at an address that it could not read.", bootAgain, health.RebootNode},
	{12, Firmware, Fatal, "The controller that starts the board failed.", bootAgain, health.RebootNode},
	{13, PCIe, Corrected, "The PCIe link had an error that was corrected.", nothing, health.None},
	{14, PCIe, Fatal, "The PCIe link had an error after which the board cannot be reached reliably.",
		"Drain the node and reboot it; if the code comes back, check the seat of the board and the slot.", health.RebootNode},
	{15, WAFL, Corrected, "A WAFL link to another board had an error that was corrected.", nothing, health.None},
	{16, WAFL, Fatal, "A WAFL link to another board failed.", resetLinked, health.DrainAndReset},
	{17, XGMI, Corrected, "An XGMI link to another board had an error that was corrected.", nothing, health.None},
	{18, XGMI, Fatal, "An XGMI link to another board failed.", resetLinked, health.DrainAndReset},
	{19, Memory, Fatal, "The memory has more retired pages than a board may have.",
		"Drain the board and have it replaced.", health.RMA},
	{20, Memory, Fatal, "The memory had an error that its own ECC could not correct, and the board cannot go on.", resetBoard, health.ResetGPU},
	{21, Memory, Fatal, "Data was damaged on its way to or from the memory, and the board cannot go on.", resetBoard, health.ResetGPU},
	{22, Memory, Uncorrected, "The memory had an error that its own ECC could not correct; the data is marked as lost.", restartWork, health.RestartApp},
	{23, Memory, Uncorrected, "Data was damaged on its way to or from the memory, and is marked as lost.", restartWork, health.RestartApp},
	{24, Memory, Corrected, "The memory had an error that was corrected.", nothing, health.None},
	{25, Memory, Fatal, "The memory had an error after which the board cannot go on.", resetBoard, health.ResetGPU},
	{26, Chip, Fatal, "A check inside the chip found a state that must not be.", resetBoard, health.ResetGPU},
	{27, Chip, Fatal, "A part of the chip did not answer in time.", resetBoard, health.ResetGPU},
	{28, Chip, Uncorrected, "A memory inside the chip had an error that could not be corrected; the data is marked as lost.", restartWork, health.RestartApp},
	{29, Chip, Corrected, "A memory inside the chip had an error that was corrected.", nothing, health.None},
	{30, Chip, Fatal, "The chip had an error after which the board cannot go on.", resetBoard, health.ResetGPU},
	{31, Record, Any, "The board wrote an error record that is not in the form of one.", readRecord, health.ReadLog},
	{32, Record, Any, "The board wrote an error record without the registers that name the error.", readRecord, health.ReadLog},
	{33, Record, Any, "The board wrote an error record with registers that cannot be.", readRecord, health.ReadLog},
	{34, Unknown, Any, "The board wrote an error record that stands for no known error.", readRecord, health.ReadLog},
}
